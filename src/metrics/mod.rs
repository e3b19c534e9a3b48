//! Metrics: pure functions from outcomes and measurements to figures. Source: protocol §3–4.
//!
//! [`category`] judges one method, [`integrity`] checks that its test is honest, [`aggregate`] combines many methods,
//! [`bootstrap`] gives confidence intervals, [`samples`] says what the best of several samples comes to. Nothing here reads files or the clock.

pub mod aggregate;
pub mod bootstrap;
pub mod category;
pub mod coverage;
pub mod integrity;
pub mod mutation;
pub mod samples;
