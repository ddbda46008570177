//! `run_tx` against a real server. Obligations D1, D2.
