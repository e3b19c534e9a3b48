//! Debian's archive: signed indexes, packages, and which packages a set of roots needs.

pub mod control;
