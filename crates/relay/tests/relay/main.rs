//! The relay against a real server and the embedded emulator.

mod hand_over;
mod order;
mod process;
mod reoffer;
mod support;
