//! From the wire to a failure: one table, and nothing else in this crate chooses a class for an answer.
//!
//! Sources: <https://docs.stripe.com/api/errors>, <https://docs.stripe.com/error-low-level>,
//! <https://docs.stripe.com/rate-limits>, <https://docs.stripe.com/api/idempotent_requests>.
//!
//! The idempotency layer sits *behind* the rate limiter and authentication and *before* execution. So 429 and 401
//! leave the key unused, an answer of an executed request is stored under the key, failures included, and a replayed
//! 500 says nothing about what the first execution did.

use std::borrow::Cow;

use backline_failure::{Class, Failure};

use crate::reply::{ErrorBody, Reply};

/// What kind of request was answered, because the same answer means different things to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A POST on the platform's own account.
    Write,
    /// A POST on behalf of a connected account.
    WriteConnected,
    /// A GET: it has no effect, so its failure is never unknown.
    Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Refused for good after execution; the answer is stored under the key.
    Refused,
    /// Refused for now after execution; a later try needs a new key.
    RefusedForNow,
    /// Not executed; the same key may be presented again.
    SameKeyLater,
    /// Stopped by a limiter before the key layer.
    SlowDown,
    /// Our credentials are refused before the key layer.
    Credentials,
    /// The account that the request is for may not do this: ours parks the provider, a connected one only its own work.
    Standing,
    /// It may have acted.
    Ambiguous,
}

use Verdict::{Ambiguous, Credentials, Refused, RefusedForNow, SameKeyLater, SlowDown, Standing};

const ANY: u16 = 0;

/// Status, type, code of the answer (empty: any), code of the failure (empty: `stripe.` and the answer's), verdict.
/// The first row that matches decides. An answer without Stripe's error envelope matches only rows that ask for
/// neither type nor code, and those exist only where the status alone is a promise.
const TABLE: &[(u16, &str, &str, &str, Verdict)] = &[
    // Another request holds the key: wait for its answer under the same key (field case 67).
    (409, "", "idempotency_key_in_use", "stripe.key_in_use", SameKeyLater),
    // The key was used with other parameters. This request did nothing, but the other one may have acted for the same
    // submission, so calling it a refusal could pay twice. The code deserves an alert: frozen bytes were not frozen.
    (ANY, "idempotency_error", "", "stripe.key_reused", Ambiguous),
    // A limit of one card or one object must not slow the fleet.
    (ANY, "", "card_decline_rate_limit_exceeded", "", Refused),
    (429, "", "payment_intent_rate_limit_exceeded", "", SameKeyLater),
    (429, "", "lock_timeout", "stripe.lock_timeout", SlowDown),
    (429, "", "", "stripe.rate_limited", SlowDown),
    (401, "invalid_request_error", "", "stripe.unauthorized", Credentials),
    (401, "authentication_error", "", "stripe.unauthorized", Credentials),
    (ANY, "", "account_invalid", "", Standing),
    (ANY, "", "payouts_not_allowed", "", Standing),
    (ANY, "", "transfers_not_allowed", "", Standing),
    (403, "invalid_request_error", "", "stripe.forbidden", Credentials),
    (ANY, "", "api_key_expired", "", Credentials),
    (ANY, "", "platform_api_key_expired", "", Credentials),
    (ANY, "", "secret_key_required", "", Credentials),
    (ANY, "", "testmode_charges_only", "", Credentials),
    (ANY, "", "tls_version_unsupported", "", Credentials),
    // Time or funding heals these, under a new key because the refusal is stored.
    (ANY, "", "balance_insufficient", "", RefusedForNow),
    (ANY, "", "payouts_limit_exceeded", "", RefusedForNow),
    (ANY, "", "instant_payouts_limit_exceeded", "", RefusedForNow),
    (402, "", "processing_error", "", RefusedForNow),
    (402, "", "payment_method_provider_timeout", "", RefusedForNow),
    (400, "invalid_request_error", "", "", Refused),
    (402, "card_error", "", "", Refused),
    (402, "invalid_request_error", "", "", Refused),
    (404, "invalid_request_error", "", "", Refused),
    (409, "invalid_request_error", "", "stripe.conflict", SameKeyLater),
    (500, "", "", "stripe.server_error", Ambiguous),
    (502, "", "", "stripe.server_error", Ambiguous),
    (503, "", "", "stripe.server_error", Ambiguous),
    (504, "", "", "stripe.server_error", Ambiguous),
];

/// Turns an answer other than 2xx into a failure.
pub(crate) fn refusal(reply: &Reply, asked: Asked) -> Failure {
    let error = reply.error();
    let (name, verdict) = find(reply.status, error.as_ref());
    let resource_specific = reply.rate_limited_reason.as_deref() == Some("resource-specific");
    let verdict = match verdict {
        SlowDown if resource_specific => SameKeyLater,
        // Stripe's own word about this very answer overrides the table, unless it only repeats a stored one.
        Refused | RefusedForNow if reply.should_retry == Some(true) && !reply.replayed => SameKeyLater,
        SameKeyLater if reply.should_retry == Some(false) && !resource_specific => Ambiguous,
        // A stored refusal of an account that has been unparked since would come back for ever under its key.
        Credentials | Standing if reply.replayed => RefusedForNow,
        other => other,
    };
    let name = match name {
        "stripe.server_error" if reply.replayed => Cow::Borrowed("stripe.server_error_replayed"),
        "" => stable_name(error.as_ref()),
        name => Cow::Borrowed(name),
    };
    finish(reply, error.as_ref(), failure(verdict, name, asked, reply.replayed))
}

/// A 2xx that this build cannot read, or that speaks of something else than what was asked: Stripe acted, on what is
/// for a lookup to find out.
pub(crate) fn unreadable(reply: &Reply, asked: Asked, name: &'static str, why: &str) -> Failure {
    finish(reply, None, failure(Ambiguous, Cow::Borrowed(name), asked, false)).with_detail(why)
}

fn find(status: u16, error: Option<&ErrorBody>) -> (&'static str, Verdict) {
    let kind = error.map_or("", |error| error.kind.as_str());
    let code = error.and_then(|error| error.code.as_deref()).unwrap_or_default();
    TABLE
        .iter()
        .find(|(row_status, row_kind, row_code, ..)| {
            (*row_status == ANY || *row_status == status)
                && (row_kind.is_empty() || *row_kind == kind)
                && (row_code.is_empty() || *row_code == code)
        })
        .map_or(("stripe.unlisted_answer", Ambiguous), |(_, _, _, name, verdict)| (name, *verdict))
}

fn failure(verdict: Verdict, name: Cow<'static, str>, asked: Asked, replayed: bool) -> Failure {
    let read = asked == Asked::Read;
    let (class, key_spent) = match verdict {
        Refused => (Class::Rejected, true),
        RefusedForNow => (Class::Transient, true),
        SameKeyLater => (Class::Transient, false),
        SlowDown => (Class::Throttled, replayed),
        Credentials => (Class::Blocked, false),
        Standing if asked == Asked::WriteConnected => (Class::Rejected, true),
        Standing => (Class::Blocked, false),
        Ambiguous if read => (Class::Transient, false),
        Ambiguous => (Class::Unknown, false),
    };
    Failure { key_spent: key_spent && !read, stored_answer: replayed && !read, ..Failure::new(class, name) }
}

fn finish(reply: &Reply, error: Option<&ErrorBody>, mut failure: Failure) -> Failure {
    failure = failure.with_evidence(reply.evidence(error));
    failure.retry_after = reply.retry_after;
    match error.and_then(|error| error.message.as_deref()) {
        Some(message) => failure.with_detail(message),
        None => failure,
    }
}

/// Stripe's code as part of ours, if it looks like one: it becomes a metric label and a fingerprint.
fn stable_name(error: Option<&ErrorBody>) -> Cow<'static, str> {
    let plain = |text: &&str| {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    match error.map(|error| error.code.as_deref().unwrap_or(&error.kind)).filter(plain) {
        Some(code) => Cow::Owned(format!("stripe.{code}")),
        None => Cow::Borrowed("stripe.refused"),
    }
}

#[cfg(test)]
mod tests;
