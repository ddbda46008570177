//! Private PostgreSQL clusters and child processes for development, tests and drills.
//!
//! Guarantee: whatever this crate starts ends when the process that started it ends, however it ends. SIGKILL runs
//! no destructor, so each child's parent is a small shell that holds the read end of a pipe; the kernel closes the
//! write end with us, and the shell stops its child ([`process::Process`] and [`pg::Cluster`] share that keeper).
//!
//! The crate depends on nothing but system calls, because `cargo xtask` and every test compile it first. It runs as
//! root (the PostgreSQL server then runs as `postgres` or `nobody`) and as an ordinary user.

mod keeper;
pub mod paths;
pub mod pg;
mod poll;
pub mod process;
mod table;
