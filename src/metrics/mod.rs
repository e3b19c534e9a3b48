//! Metrics: what outcomes and measurements add up to, as pure functions of values. Source: protocol §3–4.
//!
//! [`category`] judges one method, [`aggregate`] many, [`bootstrap`] says how certain a difference is. Nothing here reads
//! files or knows the time.

pub mod aggregate;
pub mod bootstrap;
pub mod category;
pub mod coverage;
pub mod mutation;
