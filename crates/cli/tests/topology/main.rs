//! `backline topology` and what the doctor and `explain` say of topics, through the real command and a Pub/Sub on
//! Google's own protocol.

mod diagnosis;
mod round_trip;
mod sources;
mod support;
