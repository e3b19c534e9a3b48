//! Running one sealed container at a time: what it is made of, the engines that start it, and the init inside it.

pub mod spec;
