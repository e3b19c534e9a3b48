//! What records add up to: comparisons with labels, reports of scored submissions, and measurements side by side.

pub mod measurement;
pub mod score;
pub mod validation;
