//! The migrations are compiled in; a file that is added does not make cargo compile this crate again by itself.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
