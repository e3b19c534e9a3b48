//! Checks the sources of projects: git, and the mirror if one is set.

use std::io;
use std::process::Command;

use serde_json::json;

use super::Check;
use crate::error::Failure as _;
use crate::task::RepositoryName;
use crate::workspace::MirrorTemplate;

/// Checks that `git` can be run. Without a mirror it is required.
pub fn git(mirror: bool) -> Check {
    judge_git(
        mirror,
        Command::new("git").arg("--version").output().map(|output| {
            let text = String::from_utf8_lossy(&output.stdout);
            output.status.success().then(|| text.trim().chars().take(80).collect::<String>())
        }),
    )
}

fn judge_git(mirror: bool, version: io::Result<Option<String>>) -> Check {
    let trouble = match version {
        Ok(Some(version)) => return Check::ok("git", version.clone()).with(json!({"version": version})),
        Ok(None) => "`git --version` fails".to_owned(),
        Err(error) => format!("the command can't be run: {error}"),
    };
    if mirror {
        return Check::ok("git", format!("{trouble}; the mirror is read without it"));
    }
    Check::fail("git", trouble, "install git, or name a mirror with `--git-mirror`, for which it is not needed")
}

/// Checks the mirror's template, and that the mirror has the repositories of the imported manifests.
pub fn mirror(template: Option<&str>, repositories: &[RepositoryName]) -> Check {
    let Some(text) = template else {
        return Check::ok("git mirror", "none is named: sources are cloned from the manifests' addresses");
    };
    let template = match MirrorTemplate::new(text) {
        Ok(template) => template,
        Err(error) => return Check::fail("git mirror", error.to_string(), error.hint().unwrap_or_default()),
    };
    let missing: Vec<&RepositoryName> = repositories.iter().filter(|name| !template.path(name).is_dir()).collect();
    let facts = json!({"repositories": repositories.len(), "missing": missing});
    let found = repositories.len() - missing.len();
    let check = match missing.first() {
        None if repositories.is_empty() => Check::ok("git mirror", "the template can be used; nothing is imported yet"),
        None => Check::ok("git mirror", format!("it has all {found} imported repositories")),
        Some(first) => Check::warn(
            "git mirror",
            format!("it has {found} of {} imported repositories; {first} is missing", repositories.len()),
            "correct `--git-mirror`, or complete the mirror",
        ),
    };
    check.with(facts)
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn git_is_needed_only_without_a_mirror() {
        assert_eq!(judge_git(false, Ok(Some("git version 2".into()))).status, Status::Ok);
        let absent = || Err(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(judge_git(false, absent()).status, Status::Fail);
        assert_eq!(judge_git(true, absent()).status, Status::Ok);
    }

    #[test]
    fn a_mirror_is_looked_into() {
        let directory = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(directory.path().join("a/b.git")).unwrap();
        let template = format!("{}/{{owner}}/{{name}}.git", directory.path().display());
        let names = ["a/b".parse().unwrap(), "a/c".parse().unwrap()];
        assert_eq!(mirror(Some(&template), &names[..1]).status, Status::Ok);
        let incomplete = mirror(Some(&template), &names);
        assert_eq!((incomplete.status, incomplete.detail.contains("a/c")), (Status::Warn, true));
        assert_eq!(mirror(Some("/srv/git"), &[]).status, Status::Fail);
        assert_eq!(mirror(None, &names).status, Status::Ok);
    }
}
