//! What records add up to: comparisons with labels, and reports of scored submissions.

pub mod score;
pub mod validation;
