//! Checks the progress of the work in the data directory, and names the next command.

use serde_json::json;

use super::Check;
use crate::output::counted;

/// Counts of repositories by progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Imported repositories.
    pub repositories: usize,
    /// Imported repositories with a lock.
    pub locked: usize,
    /// Imported repositories with an image.
    pub built: usize,
}

/// Returns the check of the progress, with the next command.
pub fn work(progress: Progress) -> Check {
    let Progress { repositories, locked, built } = progress;
    let detail = format!(
        "{} imported, {locked} locked, {built} with an image",
        counted(repositories, "repository", "repositories")
    );
    let next = match progress {
        Progress { repositories: 0, .. } => "next: `testevo-sandbox import DATA`, or `testevo-sandbox demo`",
        _ if locked < repositories => "next: `testevo-sandbox lock`",
        _ if built < repositories => "next: `testevo-sandbox build-images`",
        _ => "next: `testevo-sandbox validate`",
    };
    let check = Check::ok("work", detail);
    Check { advice: Some(next.to_owned()), ..check }
        .with(json!({"repositories": repositories, "locked": locked, "built": built}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_command_is_named() {
        let next = |repositories, locked, built| work(Progress { repositories, locked, built }).advice.unwrap();
        assert!(next(0, 0, 0).contains("import"));
        assert!(next(2, 1, 0).contains("lock"));
        assert!(next(2, 2, 1).contains("build-images"));
        assert!(next(2, 2, 2).contains("validate"));
    }
}
