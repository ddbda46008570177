//! The provider module against a scripted server and against the sandbox.

mod facts;
mod gate;
mod lies;
mod listing;
mod sandbox;
mod stand_in;
mod transport;
