//! What records add up to: comparisons with labels, reports of scored submissions, measurements side by side, and what
//! other tools and published values say of the same.

pub mod crosscheck;
pub mod leaderboard;
mod markdown;
pub mod measurement;
pub mod score;
pub mod validation;
