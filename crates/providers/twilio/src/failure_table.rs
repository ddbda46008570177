//! From the wire to a verdict: one table, and nothing else in this crate chooses a class for an answer.
//!
//! Sources: `https://www.twilio.com/docs/api/errors/<code>` of each code. A 429 was "never processed, always safe to
//! retry" (20429). HTTP statuses are not documented per code, so a row asks for a status only where no code tells.

use std::borrow::Cow;

use backline_failure::{Class, Failure};

use crate::reply::Reply;

/// What kind of request was answered, because the same answer means different things to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Has an effect.
    Write,
    /// Has none, so its failure is never unknown.
    Read,
}

/// What Twilio says is already so. The request it answers did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    /// The conversation or the participant does not exist.
    Absent,
    /// The participant is a member.
    Present,
    /// A conversation with this unique name exists.
    NameTaken,
    /// The conversation is closed, for good.
    Closed,
}

/// A definite answer that is no success.
#[derive(Debug)]
pub(crate) enum Refusal {
    Fact(Fact),
    Failed(Failure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Is(Fact),
    /// Refused for good.
    Refused,
    /// Not executed; may be asked again.
    Later,
    /// Stopped by the account's concurrency limit before it was executed.
    SlowDown,
    /// The account or its key is refused.
    Credentials,
    /// It may have acted.
    Ambiguous,
}

use Verdict::{Ambiguous, Credentials, Is, Later, Refused, SlowDown};

const ANY: u16 = 0;
/// Rows with it match any answer that carries Twilio's envelope.
const ENVELOPE: u32 = 0;
/// Rows with it match without an envelope too: the status alone is a promise.
const BARE: u32 = u32::MAX;

/// Status, Twilio's code, code of the failure (empty: `twilio.error_` and Twilio's), verdict. The first row that
/// matches decides.
const TABLE: &[(u16, u32, &str, Verdict)] = &[
    (ANY, 50353, "twilio.name_taken", Is(Fact::NameTaken)),
    (ANY, 50433, "twilio.participant_present", Is(Fact::Present)),
    // The same address pair in the same group conversation: Twilio says itself that it may be left alone.
    (ANY, 50437, "twilio.participant_present", Is(Fact::Present)),
    (ANY, 50377, "twilio.conversation_closed", Is(Fact::Closed)),
    (ANY, 50350, "twilio.not_found", Is(Fact::Absent)),
    (ANY, 50430, "twilio.not_found", Is(Fact::Absent)),
    (ANY, 50432, "twilio.not_found", Is(Fact::Absent)),
    (404, 20404, "twilio.not_found", Is(Fact::Absent)),
    // The pair belongs to another conversation: a person decides which of the two is right.
    (ANY, 50416, "twilio.address_bound_elsewhere", Refused),
    (ANY, 50425, "twilio.address_bound_elsewhere", Refused),
    (ANY, 50438, "twilio.address_bound_elsewhere", Refused),
    (ANY, 50417, "twilio.participant_limit", Refused),
    (ANY, 50418, "twilio.participant_limit", Refused),
    (ANY, 50422, "twilio.participant_limit", Refused),
    (ANY, 50426, "twilio.participant_limit", Refused),
    (ANY, 50436, "twilio.participant_limit", Refused),
    (ANY, 20429, "twilio.too_many_requests", SlowDown),
    (429, BARE, "twilio.too_many_requests", SlowDown),
    (ANY, 20003, "twilio.unauthorized", Credentials),
    (401, ENVELOPE, "twilio.unauthorized", Credentials),
    (ANY, 20005, "twilio.account_not_active", Credentials),
    (403, ENVELOPE, "twilio.forbidden", Credentials),
    (400, ENVELOPE, "", Refused),
    (409, ENVELOPE, "", Later),
    // A 404 of a request that names something Twilio does not know as a path: a wrong base URL, not an absence.
    (404, ENVELOPE, "", Later),
    (500, BARE, "twilio.server_error", Ambiguous),
    (502, BARE, "twilio.server_error", Ambiguous),
    (503, BARE, "twilio.server_error", Ambiguous),
    (504, BARE, "twilio.server_error", Ambiguous),
];

/// Judges an answer other than 2xx.
pub(crate) fn refusal(reply: &Reply, asked: Asked) -> Refusal {
    let code = reply.error_code();
    let row = TABLE.iter().find(|(status, wanted, ..)| {
        (*status == ANY || *status == reply.status)
            && match *wanted {
                BARE => true,
                ENVELOPE => code.is_some(),
                wanted => code == Some(wanted),
            }
    });
    // A 5xx acted or not, whatever its body says.
    let row = row.filter(|(status, ..)| *status != ANY || reply.status < 500);
    let (name, verdict) = match row {
        Some((_, _, name, verdict)) => (*name, *verdict),
        None if reply.status >= 500 => ("twilio.server_error", Ambiguous),
        None => ("twilio.unlisted_answer", Ambiguous),
    };
    let name = match (name, code) {
        ("", Some(code)) => Cow::Owned(format!("twilio.error_{code}")),
        ("", None) => Cow::Borrowed("twilio.refused"),
        (name, _) => Cow::Borrowed(name),
    };
    match verdict {
        Is(fact) => Refusal::Fact(fact),
        verdict => Refusal::Failed(finish(reply, code, failure(verdict, name, asked))),
    }
}

/// A 2xx that this build cannot read, or that speaks of something else than what was asked: Twilio acted, on what is
/// for a lookup to find out.
pub(crate) fn unreadable(reply: &Reply, asked: Asked, name: &'static str, why: &str) -> Failure {
    finish(reply, None, failure(Ambiguous, Cow::Borrowed(name), asked)).with_detail(why)
}

/// A fact that answers another question than the one asked, such as "name taken" to a deletion. Nothing was done, and
/// a bounded number of further attempts may find better.
pub(crate) fn out_of_place(reply: &Reply, fact: Fact) -> Failure {
    let code = reply.error_code();
    finish(reply, code, Failure::transient("twilio.answer_out_of_place"))
        .with_detail(format!("Twilio answered {fact:?} to a request that cannot meet it"))
}

fn failure(verdict: Verdict, name: Cow<'static, str>, asked: Asked) -> Failure {
    let class = match verdict {
        Refused => Class::Rejected,
        Later | Is(_) => Class::Transient,
        SlowDown => Class::Throttled,
        Credentials => Class::Blocked,
        Ambiguous if asked == Asked::Read => Class::Transient,
        Ambiguous => Class::Unknown,
    };
    Failure::new(class, name)
}

fn finish(reply: &Reply, code: Option<u32>, mut failure: Failure) -> Failure {
    failure = failure.with_evidence(reply.evidence(code));
    failure.retry_after = reply.retry_after;
    match code {
        Some(code) => {
            failure.with_detail(format!("Twilio error {code}, https://www.twilio.com/docs/api/errors/{code}"))
        }
        None => failure,
    }
}

#[cfg(test)]
mod tests;
