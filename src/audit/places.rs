//! What the files of git repositories say, gathered by repository: a workspace's has one commit, and nothing names another.

use std::collections::BTreeMap;

use super::Kind;

/// The most names and commits that are remembered of one repository.
const MOST_REMEMBERED: usize = 10_000;

#[derive(Debug, Default)]
struct Repository {
    has_objects: bool,
    /// Commits with their place and number of parents.
    commits: BTreeMap<String, (String, usize)>,
    /// Names with the commits that they stand for.
    references: Vec<(String, String)>,
}

/// The git repositories that an audit met, by directory.
#[derive(Debug, Default)]
pub(super) struct Repositories(BTreeMap<String, Repository>);

/// A finding about a repository: kind, place and detail.
pub(super) type Fact = (Kind, String, String);

impl Repositories {
    /// Notes a commit.
    pub(super) fn commit(&mut self, place: &str, id: String, parents: usize) {
        let repository = self.0.entry(directory_of(place).to_owned()).or_default();
        if repository.commits.len() < MOST_REMEMBERED {
            repository.commits.insert(id, (place.to_owned(), parents));
        }
    }

    /// Notes what a file says if it belongs to a repository, and returns what is wrong with it alone.
    pub(super) fn file(&mut self, place: &str, content: &[u8]) -> Option<Fact> {
        let path = format!("/{place}");
        let name = path.rsplit(['/', '!']).next().unwrap_or_default().to_owned();
        let fact = |kind, detail: &str| Some((kind, place.to_owned(), detail.to_owned()));
        if path.contains("/objects/") && is_object_file(&path) {
            self.0.entry(directory_of(place).to_owned()).or_default().has_objects = true;
        }
        if path.ends_with("/objects/info/alternates") && !content.trim_ascii().is_empty() {
            return fact(Kind::Alternates, String::from_utf8_lossy(content.trim_ascii()).lines().next()?);
        }
        let is_reference =
            ["/refs/heads/", "/refs/tags/", "/refs/remotes/", "/refs/stash", "/refs/notes/", "/refs/pull/"]
                .iter()
                .any(|part| path.contains(part));
        if path.contains("/logs/HEAD") || (path.contains("/logs/") && is_reference) {
            let text = String::from_utf8_lossy(content);
            let line = text.lines().rev().find(|line| ids(line).count() >= 2)?;
            return fact(Kind::Reflog, &line.chars().take(200).collect::<String>());
        }
        if name == "config" && content.windows(8).any(|window| window == b"[remote ") {
            return fact(Kind::Remote, "the configuration names a remote");
        }
        let is_head = ["HEAD", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "packed-refs", "shallow"];
        if is_reference || is_head.contains(&name.as_str()) {
            let repository = self.0.entry(directory_of(place).to_owned()).or_default();
            let text = String::from_utf8_lossy(content);
            let left = MOST_REMEMBERED.saturating_sub(repository.references.len());
            let named = text.lines().flat_map(ids).take(left).map(|id| (place.to_owned(), id.to_owned()));
            repository.references.extend(named);
        }
        None
    }

    /// Returns what is wrong with the repositories as a whole.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (directory, repository) in &self.0 {
            let is_one = repository.has_objects || !repository.commits.is_empty() || directory.ends_with(".git");
            if !is_one {
                continue;
            }
            let number = repository.commits.len();
            for (id, (place, parents)) in &repository.commits {
                if number > 1 {
                    facts.push((Kind::Commits, place.clone(), format!("{id}, one of {number} commits")));
                } else if *parents > 0 {
                    facts.push((Kind::Commits, place.clone(), format!("{id} has a parent")));
                }
            }
            for (place, id) in &repository.references {
                if !repository.commits.contains_key(id) {
                    facts.push((Kind::Reference, place.clone(), format!("{id} is not there")));
                }
            }
        }
        facts
    }
}

fn is_object_file(path: &str) -> bool {
    let Some((_, below)) = path.rsplit_once("/objects/") else { return false };
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match below.split_once('/') {
        Some(("pack" | "info", _)) => true,
        Some((first, rest)) => first.len() == 2 && is_hex(first) && rest.get(..38).is_some_and(is_hex),
        None => false,
    }
}

/// Returns the git directory that a place lies in.
fn directory_of(place: &str) -> &str {
    let parts = ["/objects/", "/refs/", "/logs/"];
    match parts.iter().filter_map(|part| place.find(part)).min() {
        Some(end) => &place[..end],
        None => place.rfind(['/', '!']).map_or("", |end| &place[..end]),
    }
}

/// Returns the ids of 40 hexadecimal digits in a line.
fn ids(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_ascii_hexdigit());
    words.filter(|word| word.len() == 40 && word.bytes().any(|byte| byte != b'0'))
}
