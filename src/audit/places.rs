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
        let whole = format!("/{place}");
        // A directory above a repository may have the name of one in it.
        let path = whole.rfind("/.git/").map_or(whole.as_str(), |at| &whole[at..]);
        let name = path.rsplit(['/', '!']).next().unwrap_or_default().to_owned();
        let fact = |kind, detail: &str| Some((kind, place.to_owned(), detail.to_owned()));
        if path.contains("/objects/") && is_object_file(path) {
            self.0.entry(directory_of(place).to_owned()).or_default().has_objects = true;
        }
        if path.ends_with("/objects/info/alternates") && !content.trim_ascii().is_empty() {
            return fact(Kind::Alternates, String::from_utf8_lossy(content.trim_ascii()).lines().next()?);
        }
        let is_reference = path.contains("/refs/");
        if path.contains("/logs/HEAD") || (path.contains("/logs/") && is_reference) {
            let text = String::from_utf8_lossy(content);
            // A log's first line, of a clone too, has an old id of zeros.
            if let Some(line) = text.lines().rev().find(|line| words(line).count() >= 2) {
                return fact(Kind::Reflog, &line.chars().take(200).collect::<String>());
            }
        }
        if path.contains("/reftable/") && content.starts_with(b"REFT") {
            return fact(Kind::Reference, "a table of references");
        }
        if matches!(name.as_str(), "config" | "config.worktree") {
            let text = String::from_utf8_lossy(content).to_lowercase();
            let has = |section: &str| text.lines().any(|line| line.trim_start().starts_with(section));
            if has("[remote ") || has("[remote.") || has("[remote\t") || has("[url ") {
                return fact(Kind::Remote, "the configuration names a remote");
            }
            // Files of other programs have sections of this name, too.
            if (has("[include]") || has("[includeif")) && (path.contains("/.git/") || has("[core]")) {
                return fact(Kind::Remote, "the configuration includes another file");
            }
        }
        if name == ".git" && content.starts_with(b"gitdir:") {
            return fact(Kind::Alternates, String::from_utf8_lossy(content.trim_ascii()).lines().next()?);
        }
        if name == "commondir" && path.contains("/.git/") {
            return fact(Kind::Alternates, String::from_utf8_lossy(content.trim_ascii()).lines().next()?);
        }
        let is_head = name.ends_with("HEAD") || matches!(name.as_str(), "packed-refs" | "shallow");
        if is_reference || is_head {
            let repository = self.0.entry(directory_of(place).to_owned()).or_default();
            let text = String::from_utf8_lossy(content);
            let left = MOST_REMEMBERED.saturating_sub(repository.references.len());
            let named = text.lines().flat_map(ids).take(left).map(|id| (place.to_owned(), id.to_owned()));
            repository.references.extend(named);
        }
        None
    }

    /// Returns the facts against whole git repositories, such as more than one commit.
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
    // A directory above a repository may have such a name as well.
    let begin = place.rfind("/.git/").map(|at| at + "/.git".len());
    let rest = &place[begin.unwrap_or_default()..];
    match (parts.iter().filter_map(|part| rest.find(part)).min(), begin) {
        (Some(end), _) => &place[..begin.unwrap_or_default() + end],
        (None, Some(end)) => &place[..end],
        (None, None) => place.rfind(['/', '!']).map_or("", |end| &place[..end]),
    }
}

/// Returns the words of a line that have the form of ids: 40 or 64 hexadecimal digits.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| matches!(word.len(), 40 | 64))
}

/// Returns the ids in a line. One of zeros stands for none.
fn ids(line: &str) -> impl Iterator<Item = &str> {
    words(line).filter(|word| word.bytes().any(|byte| byte != b'0'))
}
