//! Situations that seeded bugs must not survive.
