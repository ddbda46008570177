//! Random walks over a queue: whatever happens, order within keys holds, the books balance and nothing is
//! lost.

use super::entry::Standing;
use super::fixture::{Bench, rules};
use super::queue::DeadLetterRule;
use super::{Delivery, RetryBackoff, Rules};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const STREAMS: [u64; 2] = [1, 2];
const KEYS: [&str; 4] = ["", "a", "b", "c"];

fn variants() -> Vec<Rules> {
    let ordered = Rules { ordered: true, ..rules() };
    let retry = RetryBackoff { minimum: Duration::from_secs(1), maximum: Duration::from_secs(4) };
    let dead_letter = DeadLetterRule { topic: "dead".into(), attempts: 3 };
    vec![
        rules(),
        ordered.clone(),
        Rules { retry: Some(retry), ..ordered.clone() },
        Rules { retry: Some(retry), dead_letter: Some(dead_letter), ..ordered.clone() },
        Rules { exactly_once: true, retain_acked: true, ..ordered },
    ]
}

/// Order and ownership of what just went out.
fn check_delivery(bench: &Bench, delivery: &Delivery, stream: u64) {
    let queue = &bench.queue;
    let Some(key) = delivery.stored.ordering_key.as_deref().filter(|_| queue.rules.ordered) else { return };
    for (position, entry) in &queue.entries {
        if entry.stored.ordering_key.as_deref() != Some(key) {
            continue;
        }
        let waits = matches!(entry.standing, Standing::Ready | Standing::Scheduled(_));
        assert!(*position > delivery.position || !waits, "{position} waits before {}", delivery.position);
        if let Standing::Leased(lease) = entry.standing {
            assert_eq!(lease.stream, stream, "two receivers have key {key}");
        }
    }
}

fn check_books(bench: &Bench) {
    let queue = &bench.queue;
    let mut out: BTreeMap<u64, (usize, usize)> = STREAMS.map(|stream| (stream, (0, 0))).into();
    let mut leased = 0;
    for entry in queue.entries.values() {
        if let Standing::Leased(lease) = entry.standing {
            let (messages, bytes) = out.entry(lease.stream).or_default();
            *messages += 1;
            *bytes += entry.stored.wire.len();
            leased += 1;
        }
    }
    assert_eq!(queue.leased(), leased);
    for (stream, slot) in &queue.slots {
        assert_eq!((slot.outstanding, slot.bytes), out[stream]);
    }
}

#[test]
fn walks() {
    for (variant, rules) in variants().into_iter().enumerate() {
        for seed in 0..60 {
            walk(rules.clone(), StdRng::seed_from_u64(seed * 10 + variant as u64));
        }
    }
}

fn walk(rules: Rules, mut random: StdRng) {
    let mut bench = Bench::new(rules);
    let mut out: Vec<Delivery> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut published = 0;
    for _ in 0..120 {
        match random.random_range(0..10) {
            0..3 => {
                for _ in 0..random.random_range(1..5) {
                    bench.publish(&[(KEYS[random.random_range(0..KEYS.len())], "x")]);
                    published += 1;
                }
            }
            3..6 => {
                let stream = STREAMS[random.random_range(0..STREAMS.len())];
                for delivery in bench.take_by(stream) {
                    check_delivery(&bench, &delivery, stream);
                    seen.insert(delivery.position);
                    out.push(delivery);
                }
            }
            6..8 if !out.is_empty() => {
                let delivery = out.swap_remove(random.random_range(0..out.len()));
                bench.ack(&delivery);
            }
            8 if !out.is_empty() => {
                let delivery = out.swap_remove(random.random_range(0..out.len()));
                for dead in bench.nack(&delivery).forward {
                    bench.queue.finish_forward(dead.position, random.random_bool(0.8), bench.now);
                }
            }
            _ => {
                let effects = bench.advance(Duration::from_secs(random.random_range(0..6)));
                for dead in effects.forward {
                    bench.queue.finish_forward(dead.position, random.random_bool(0.8), bench.now);
                }
            }
        }
        check_books(&bench);
    }
    for _ in 0..200 {
        for stream in STREAMS {
            for delivery in bench.take_by(stream) {
                check_delivery(&bench, &delivery, stream);
                seen.insert(delivery.position);
                bench.ack(&delivery);
            }
        }
        for dead in bench.advance(Duration::from_secs(5)).forward {
            bench.queue.finish_forward(dead.position, true, bench.now);
        }
        check_books(&bench);
    }
    assert_eq!(bench.queue.unacked(), 0, "something never came out");
    assert_eq!(seen.len(), published, "something was never delivered");
}
