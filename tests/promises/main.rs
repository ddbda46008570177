//! The promises, one file each: what holds, against real PostgreSQL, real processes and the real protocol.

mod broker_confirmation;
mod field_claims;
mod field_database;
mod field_payments;
mod field_pubsub;
mod field_relay;
mod fresh_database;
mod g10_replay_keeps_identity;
mod g13_bounded;
mod g1_atomic_intent;
mod g2_handed_over_or_parked;
mod g3_published_means_confirmed;
mod g4_one_completion;
mod g5_external_effects;
mod g6_unknown;
mod g7_generations;
mod g8_stale_holders;
mod payment_journey;
mod relay_crash_sweep;
mod seeded_bugs;
mod serial_keys;
mod sweep;
mod sweep_failover;
mod sweep_one_home;
mod sweep_replies;
