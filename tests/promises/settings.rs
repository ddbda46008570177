//! A setting that cannot work ends the start by its name, before anything is claimed, and a secret is not shown.

use anyhow::ensure;
use backline_promises::{PAYMENTS, SCRIPTED, Stack, TWILIO};

/// Program, settings on top of those it starts with, and what it must say.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

#[tokio::test]
async fn what_cannot_work_is_refused_by_name() -> anyhow::Result<()> {
    let mut plan = Stack::builder().without_relay();
    for worker in [PAYMENTS, TWILIO, SCRIPTED] {
        plan = plan.later(worker, worker);
    }
    let mut stack = plan.start().await?;
    let cases: [Case; 12] = [
        (PAYMENTS, &[("STRIPE_REQUEST_TIMEOUT", "0s")], &["STRIPE_REQUEST_TIMEOUT: must not be zero"]),
        (PAYMENTS, &[("STRIPE_BACKOFF", "0s")], &["STRIPE_BACKOFF: must not be zero"]),
        (PAYMENTS, &[("STRIPE_LINGER", "0s")], &["STRIPE_LINGER: must not be zero"]),
        (PAYMENTS, &[("STRIPE_LOOKUP_LAG", "0s")], &["STRIPE_LOOKUP_LAG: must not be zero"]),
        (PAYMENTS, &[("STRIPE_SETTLEMENT_POLL", "0s")], &["STRIPE_SETTLEMENT_POLL: must not be zero"]),
        (PAYMENTS, &[("STRIPE_API_KEY", "pk_live_canary")], &["STRIPE_API_KEY", "publishable key"]),
        (
            PAYMENTS,
            &[("BACKLINE_LEASE", "3s"), ("STRIPE_REQUEST_TIMEOUT", "2s")],
            &["BACKLINE_LEASE", "STRIPE_REQUEST_TIMEOUT"],
        ),
        (TWILIO, &[("TWILIO_REQUEST_TIMEOUT", "0s")], &["TWILIO_REQUEST_TIMEOUT: must not be zero"]),
        (
            TWILIO,
            &[("BACKLINE_LEASE", "3s"), ("TWILIO_REQUEST_TIMEOUT", "2s")],
            &["BACKLINE_LEASE", "TWILIO_REQUEST_TIMEOUT"],
        ),
        // A worker that checks nothing itself: the kind is named.
        (SCRIPTED, &[("PROMISE_TIMEOUT", "0s")], &["effect.", "must not be zero"]),
        (SCRIPTED, &[("BACKLINE_LEASE", "3s"), ("PROMISE_TIMEOUT", "2s")], &["BACKLINE_LEASE", "effect."]),
        (SCRIPTED, &[("BACKLINE_POLL", "0s")], &["BACKLINE_POLL: must not be zero"]),
    ];
    for (program, settings, words) in cases {
        let (code, text) = stack.member(program)?.refusal(settings)?;
        ensure!(code == 1, "{program} with {settings:?} ended with {code}: {text}");
        for word in words {
            ensure!(text.contains(word), "{program} with {settings:?} does not say {word:?}: {text}");
        }
        ensure!(!text.contains("canary"), "{program} shows the key: {text}");
    }
    Ok(())
}
