//! The runtime inside this process, against real PostgreSQL: one fresh database a test.

mod budget;
mod deadline;
mod eager;
mod generations;
mod handlers;
mod schema;
mod support;
mod topology;
