//! Reports: what records add up to, for machines and for people. Pure functions of records.

pub mod validation;
