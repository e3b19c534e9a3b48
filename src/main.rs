//! The command `testevo-sandbox`.

fn main() {}
