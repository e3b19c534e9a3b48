//! What records add up to: comparisons with labels, reports of scored submissions, and what published values say of the same.

pub mod leaderboard;
pub mod markdown;
pub mod score;
pub mod validation;
