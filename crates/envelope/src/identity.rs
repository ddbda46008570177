//! Deterministic identities.

use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

/// Identity of an event that a consumer or step emits: asking twice gives the same id.
///
/// Shaped like `UUIDv7`: the time bits come from the emitting row's *stored* acceptance time, never from a clock, so
/// partitions and floors by id range hold for children too; the rest is the hash of (parent, step, target).
#[must_use]
pub fn child_event_id(accepted_at: OffsetDateTime, parent: Uuid, step: &str, target: &str) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(parent.as_bytes());
    // The length in front keeps ("ab", "c") apart from ("a", "bc").
    hash.update((step.len() as u64).to_be_bytes());
    hash.update(step.as_bytes());
    hash.update(target.as_bytes());
    let digest = hash.finalize();

    let millis = accepted_at.unix_timestamp_nanos() / 1_000_000;
    // 48 bits reach to the year 10889; a time before 1970 is a broken row and sorts first.
    let millis = u64::try_from(millis).unwrap_or(0) & 0xffff_ffff_ffff;
    let mut bytes = [0_u8; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&digest[..10]);
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Uuid::from_bytes(bytes)
}
