//! The server program `spacetimedb-standalone`.

fn main() {}
