//! How far the work in the data directory is, and which command is next.

use serde_json::json;

use super::Check;
use crate::output::counted;

/// How many repositories have what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Imported.
    pub repositories: usize,
    /// Of these, with a lock.
    pub locked: usize,
    /// Of these, with an image.
    pub built: usize,
}

/// Returns what there is and what comes next.
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
