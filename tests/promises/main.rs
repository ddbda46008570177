//! The promises, one file each: what holds, against real PostgreSQL, real processes and the real protocol.

mod fresh_database;
