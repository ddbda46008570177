//! The faults a test may ask for, as read from `/faults`.

use serde::{Deserialize, Serialize};

/// Everything that goes wrong on purpose. An empty plan is a well-behaved service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultPlan {
    /// Seed of the random choices below; the same seed makes the same choices.
    pub seed: Option<u64>,
    /// Deliver accepted messages several times.
    pub duplicate: Option<Duplicate>,
    /// Deliver out of order, except within an ordering key of an ordered subscription.
    pub reorder: Option<Reorder>,
    /// Hold accepted messages back.
    pub delay: Option<Delay>,
    /// Confirm acknowledgements without applying them.
    pub drop_acks: Option<DropAcks>,
    /// Fail publishes, before or after accepting them. The first rule that applies is used.
    pub publish: Vec<PublishFault>,
    /// End streaming pulls. The first rule that applies is used.
    pub streams: Vec<StreamFault>,
    /// Report these delivery attempts instead of the real ones.
    pub delivery_attempts: Option<DeliveryAttempts>,
    /// Dead-letter early, late or more than once.
    pub dead_letter: Option<DeadLetterFault>,
}

/// Extra deliveries of accepted messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duplicate {
    /// Share of messages concerned, 0 to 1.
    pub probability: f64,
    /// Most extra copies of one message; the number is drawn from 1 to this.
    #[serde(default = "one")]
    pub copies: u32,
    /// Copies get message ids of their own, as after a publisher's retry.
    #[serde(default)]
    pub new_message_id: bool,
    /// Only this topic (full name).
    #[serde(default)]
    pub topic: Option<String>,
}

/// Out-of-order delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// The next message is drawn from this many waiting ones.
    pub window: usize,
}

/// Late delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// Milliseconds between acceptance and first delivery.
    pub millis: u64,
    /// Share of messages concerned, 0 to 1.
    #[serde(default = "always")]
    pub probability: f64,
    /// Only this topic (full name).
    #[serde(default)]
    pub topic: Option<String>,
}

/// Lost acknowledgements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropAcks {
    /// Every nth acknowledgement is dropped; 1 drops all.
    pub every: u64,
    /// Only this subscription (full name).
    #[serde(default)]
    pub subscription: Option<String>,
}

/// When a failing publish fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishMode {
    /// Nothing is accepted.
    Refuse,
    /// The messages are accepted and delivered, the publisher is told otherwise.
    AcceptThenFail,
}

/// A failing publish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishFault {
    /// Before or after acceptance.
    pub mode: PublishMode,
    /// gRPC code by its protocol name.
    #[serde(default = "unavailable")]
    pub code: String,
    /// How many requests fail; absent is all.
    #[serde(default)]
    pub times: Option<u64>,
    /// Only this topic (full name).
    #[serde(default)]
    pub topic: Option<String>,
    /// Only this ordering key.
    #[serde(default)]
    pub ordering_key: Option<String>,
}

/// A streaming pull that ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamFault {
    /// `CANCELLED`, `UNAVAILABLE`, `INTERNAL` or any other code, `EOF` for a clean end, or `RESET` for an
    /// HTTP/2 reset without trailers.
    pub end: String,
    /// How many streams end; absent is all, as soon as they open.
    #[serde(default)]
    pub times: Option<u64>,
    /// End after this many messages on the stream; 0 ends idle streams too.
    #[serde(default)]
    pub after_messages: u64,
    /// Only this subscription (full name).
    #[serde(default)]
    pub subscription: Option<String>,
}

/// Scripted delivery attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryAttempts {
    /// One value per delivery, in order; 0 leaves the field out. Real values follow the last one.
    pub values: Vec<i32>,
    /// Only this subscription (full name).
    #[serde(default)]
    pub subscription: Option<String>,
}

/// Dead letters that do not keep to the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterFault {
    /// Added to the policy's attempts: negative is early, positive late.
    #[serde(default)]
    pub shift: i32,
    /// How often a message is published to the dead-letter topic.
    #[serde(default = "one")]
    pub copies: u32,
}

fn one() -> u32 {
    1
}

fn always() -> f64 {
    1.0
}

fn unavailable() -> String {
    "UNAVAILABLE".into()
}
