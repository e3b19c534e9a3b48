//! Reports of runs: validation against labels, scored submissions, and comparisons with published values.

pub mod comparison;
pub mod costs;
pub mod dispute;
pub mod leaderboard;
pub mod markdown;
pub mod plan;
pub mod score;
pub mod validation;
