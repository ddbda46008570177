//! Google's own Rust clients against the emulator: REST for administration, gRPC for data.
mod admin;
mod delivery;
mod faults;
mod fixture;
mod policies;
mod restart;
mod wire;
