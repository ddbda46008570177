//! The promises, one file each: what holds, against real PostgreSQL, real processes and the real protocol.

mod broker_confirmation;
mod field_claims;
mod fresh_database;
mod payment_journey;
mod relay_crash_sweep;
mod sweep;
