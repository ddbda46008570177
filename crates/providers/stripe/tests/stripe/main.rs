//! The provider module against a scripted server and against the sandbox.

mod effects;
mod lies;
mod lookup;
mod money;
mod sandbox;
mod stand_in;
mod transport;
