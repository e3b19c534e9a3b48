//! Reads the benchmark's published data: one JSON file per repository, or JSON lines with one task each. Source:
//! protocol §5.
//!
//! The data is untrusted: sizes are bounded, every field is validated, and none is used as a path or command. Unknown
//! fields are tolerated; missing or contradictory ones are errors that name file and task. Nothing is written.

mod json;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fs_err as fs;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{
    Anchor, CloneUrl, FocalMethod, InvalidCloneUrl, InvalidText, MethodId, RepositoryName, RepositoryPath, Revision,
    Side, Task, Track,
};
use crate::digest::encode_hex;
use crate::error::{ExitStatus, Failure};
use crate::output::json_problem;

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// The most methods that a task may name, of either kind.
const MOST_METHODS: usize = 10_000;

/// The published data of one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRepository {
    /// The repository.
    pub name: RepositoryName,
    /// The address that its sources are cloned from.
    pub clone_url: CloneUrl,
    /// Whether `clone_url` differs from its `github_url`, or from its name's address on GitHub if it has none.
    pub is_cloned_from_elsewhere: bool,
    /// The Java version of its published build: 8, 11, 17 …
    pub java_version: u32,
    /// Its tasks, sorted by id.
    pub tasks: Vec<Task>,
}

/// Published data that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}", place = place(path, task.as_deref()))]
pub struct PublishedError {
    /// The file or directory.
    pub path: PathBuf,
    /// The task's id, or its position in the file if it has none.
    pub task: Option<String>,
    /// The problem.
    pub problem: Problem,
}

fn place(path: &Path, task: Option<&str>) -> String {
    match task {
        Some(task) => format!("`{}`, task {task}", path.display()),
        None => format!("`{}`", path.display()),
    }
}

/// The problems of published data.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A file could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is larger than this program reads.
    #[error("it is larger than {MOST_BYTES} bytes")]
    TooLarge,
    /// The directory has no published file.
    #[error("it has no file that ends in .json or .jsonl")]
    NoFiles,
    /// The text is not JSON.
    #[error("{}{}", if .0.is_eof() { "" } else { "it is no JSON: " }, json_problem(.0))]
    NoJson(serde_json::Error),
    /// A field is missing.
    #[error("the field `{0}` is missing")]
    Missing(String),
    /// A field has another type.
    #[error("the field `{field}` is not {expected}")]
    WrongType {
        /// The field.
        field: String,
        /// The expected type, in words.
        expected: &'static str,
    },
    /// A field's text is invalid.
    #[error("the field `{field}` is wrong: {source}")]
    Invalid {
        /// The field.
        field: String,
        /// Why the text is invalid.
        source: InvalidText,
    },
    /// The clone URL is refused.
    #[error("the field `git_clone_url` is wrong: {0}")]
    CloneUrl(#[from] InvalidCloneUrl),
    /// Two fields, tasks or files contradict each other.
    #[error("contradiction: {0}")]
    Contradiction(String),
    /// The same task id twice.
    #[error("the same id is in `{}` too", .first.display())]
    DuplicateTask {
        /// The file in which the first one is.
        first: PathBuf,
    },
}

impl Failure for PublishedError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::BadInput
    }

    fn hint(&self) -> Option<String> {
        let hint = match &self.problem {
            Problem::Io(_) => "name files, or directories of files, as the benchmark publishes them",
            Problem::NoFiles => {
                "name the published per-repository .json files, a .jsonl release, or a directory of them; directories in \
                 it are not looked into"
            }
            Problem::TooLarge | Problem::NoJson(_) => {
                "name the published per-repository .json files, a .jsonl release, or a directory of them"
            }
            Problem::Missing(_) | Problem::WrongType { .. } | Problem::Invalid { .. } | Problem::CloneUrl(_) => {
                "nothing was imported; compare the file with the one published, and correct or leave out the task"
            }
            Problem::Contradiction(_) | Problem::DuplicateTask { .. } => {
                "nothing was imported; decide which one is right, and correct or leave out the other"
            }
        };
        Some(hint.to_owned())
    }
}

/// Reads published files, and the `.json` and `.jsonl` files of published directories, and returns their content sorted
/// by repository. Several files may describe one repository if they agree.
///
/// # Errors
/// [`PublishedError`] for the first problem.
pub fn read(paths: &[PathBuf]) -> Result<Vec<PublishedRepository>, PublishedError> {
    let mut reader = Reader::default();
    for path in paths {
        for file in files_of(path)? {
            reader.file(&file)?;
        }
    }
    Ok(reader.finish())
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, PublishedError> {
    let fail = |problem| PublishedError { path: path.to_owned(), task: None, problem };
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| fail(error.into()))? {
        let file = entry.map_err(|error| fail(error.into()))?.path();
        if file.is_file() && file.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(fail(Problem::NoFiles));
    }
    files.sort();
    Ok(files)
}

#[derive(Default)]
struct Reader {
    repositories: BTreeMap<RepositoryName, (PathBuf, PublishedRepository)>,
    ids: BTreeMap<String, PathBuf>,
}

impl Reader {
    fn finish(self) -> Vec<PublishedRepository> {
        let mut repositories: Vec<_> = self.repositories.into_values().map(|(_, repository)| repository).collect();
        for repository in &mut repositories {
            repository.tasks.sort_by(|a, b| a.id.cmp(&b.id));
        }
        repositories
    }

    fn file(&mut self, path: &Path) -> Result<(), PublishedError> {
        let fail = |problem| PublishedError { path: path.to_owned(), task: None, problem };
        let text = read_bounded(path).map_err(fail)?;
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let place = format!("on line {}", index + 1);
                let fail = |problem| PublishedError { path: path.to_owned(), task: Some(place.clone()), problem };
                let fields = json::object(line).map_err(fail)?;
                let name = self.repository(path, &fields)?;
                let track = text_of(&fields, "track").map_err(fail)?;
                let track = match track {
                    "test_update" => Track::TestUpdate,
                    "test_generation" => Track::TestGeneration,
                    _ => return Err(fail(wrong_type("track", "`test_update` or `test_generation`"))),
                };
                self.task(path, place.clone(), &name, track, &fields)?;
            }
            return Ok(());
        }
        let fields = json::object(&text).map_err(fail)?;
        let name = self.repository(path, &fields)?;
        let tracks = match fields.get("tracks") {
            Some(Value::Object(tracks)) => tracks,
            Some(_) => return Err(fail(wrong_type("tracks", "an object"))),
            None => return Err(fail(Problem::Missing("tracks".into()))),
        };
        for (key, track) in [("test_update", Track::TestUpdate), ("test_generation", Track::TestGeneration)] {
            let tasks = match tracks.get(key) {
                Some(Value::Array(tasks)) => tasks,
                Some(_) => return Err(fail(wrong_type(&format!("tracks.{key}"), "a list"))),
                None => return Err(fail(Problem::Missing(format!("tracks.{key}")))),
            };
            for (index, task) in tasks.iter().enumerate() {
                let place = format!("{} of tracks.{key}", index + 1);
                let Value::Object(fields) = task else {
                    let problem = wrong_type(&format!("tracks.{key}"), "a list of objects");
                    return Err(PublishedError { path: path.to_owned(), task: Some(place), problem });
                };
                self.task(path, place, &name, track, fields)?;
            }
        }
        Ok(())
    }

    fn repository(&mut self, path: &Path, fields: &Map<String, Value>) -> Result<RepositoryName, PublishedError> {
        let fail = |problem| PublishedError { path: path.to_owned(), task: None, problem };
        let found = repository_facts(fields).map_err(fail)?;
        let name = found.name.clone();
        match self.repositories.get(&name) {
            Some((first, known))
                if (&known.clone_url, known.java_version) != (&found.clone_url, found.java_version) =>
            {
                Err(fail(Problem::Contradiction(format!(
                    "`{}` gives {name} another clone URL or Java version",
                    first.display()
                ))))
            }
            Some(_) => Ok(name),
            None => {
                self.repositories.insert(name.clone(), (path.to_owned(), found));
                Ok(name)
            }
        }
    }

    fn task(
        &mut self,
        path: &Path,
        place: String,
        repository: &RepositoryName,
        track: Track,
        fields: &Map<String, Value>,
    ) -> Result<(), PublishedError> {
        let named = match fields.get("task_id") {
            Some(Value::String(id)) => format!("`{}`", InvalidText::new("", id).text),
            _ => place,
        };
        let fail = |problem| PublishedError { path: path.to_owned(), task: Some(named.clone()), problem };
        let task = task(repository, track, fields).map_err(fail)?;
        if let Some(first) = self.ids.insert(task.id.to_string(), path.to_owned()) {
            return Err(fail(Problem::DuplicateTask { first }));
        }
        if let Some((_, known)) = self.repositories.get_mut(repository) {
            known.tasks.push(task);
        }
        Ok(())
    }
}

fn read_bounded(path: &Path) -> Result<String, Problem> {
    let mut text = String::new();
    // The file system's size is not used, because that of a pipe or a growing file differs.
    fs::File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Problem::TooLarge);
    }
    Ok(text)
}

fn repository_facts(fields: &Map<String, Value>) -> Result<PublishedRepository, Problem> {
    let address = match fields.get("github_url") {
        Some(Value::String(url)) => url.strip_prefix("https://github.com/").map(|path| path.trim_end_matches('/')),
        _ => None,
    };
    let name: RepositoryName = match (fields.get("display_name"), address) {
        (None, Some(address)) => parsed("github_url", address)?,
        _ => parsed("display_name", text_of(fields, "display_name")?)?,
    };
    if let Some(address) = address.filter(|address| !address.eq_ignore_ascii_case(name.as_str())) {
        let address = InvalidText::new("", address).text;
        return Err(Problem::Contradiction(format!("`display_name` is {name}, `github_url` is of {address}")));
    }
    let clone_url: CloneUrl = text_of(fields, "git_clone_url")?.parse()?;
    let is_cloned_from_elsewhere = match fields.get("github_url") {
        Some(Value::String(home)) => place_of(home) != place_of(clone_url.as_str()),
        _ => place_of(&format!("https://github.com/{name}")) != place_of(clone_url.as_str()),
    };
    let java_version = match fields.get("java_version") {
        None => return Err(Problem::Missing("java_version".into())),
        Some(Value::Number(number)) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        Some(Value::String(text)) => text.strip_prefix("1.").unwrap_or(text).parse().ok(),
        Some(_) => None,
    };
    let java_version = java_version
        .filter(|version| (1..100).contains(version))
        .ok_or_else(|| wrong_type("java_version", "a Java version such as 8 or 17"))?;
    Ok(PublishedRepository { name, clone_url, is_cloned_from_elsewhere, java_version, tasks: Vec::new() })
}

/// Returns host and path of an address, without parts that do not change the place.
fn place_of(url: &str) -> String {
    let place = url.split_once("://").map_or(url, |(_, place)| place);
    let place = match place.split_once('/') {
        Some((authority, path)) => {
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{host}/{}", path.trim_end_matches('/'))
        }
        None => place.to_owned(),
    };
    place.strip_suffix(".git").unwrap_or(&place).to_ascii_lowercase()
}

fn task(repository: &RepositoryName, track: Track, fields: &Map<String, Value>) -> Result<Task, Problem> {
    let rev1: Revision = parsed("rev1", text_of(fields, "rev1")?)?;
    let rev2: Revision = parsed("rev2", text_of(fields, "rev2")?)?;
    if rev1 == rev2 {
        return Err(Problem::Contradiction("`rev1` and `rev2` are the same commit".into()));
    }
    check_comparison(fields, &rev1, &rev2)?;
    let [rev1_date, rev2_date] = [date(fields, "rev1_date")?, date(fields, "rev2_date")?];
    if rev1_date > rev2_date {
        return Err(Problem::Contradiction(format!("`rev1_date` {rev1_date} is after `rev2_date` {rev2_date}")));
    }
    let test_file: RepositoryPath = parsed("test_file", text_of(fields, "test_file")?)?;
    let test_methods = test_methods(fields, &test_file)?;
    check_test_anchors(fields, &test_file, &test_methods)?;
    Ok(Task {
        id: parsed("task_id", text_of(fields, "task_id")?)?,
        repository: repository.clone(),
        track,
        rev1,
        rev2,
        rev1_date: rev1_date.to_string(),
        rev2_date: rev2_date.to_string(),
        test_file,
        test_methods,
        focal_methods: focal_methods(fields)?,
    })
}

/// Compares the revisions with those in the address of the published comparison, if that has full ones.
fn check_comparison(fields: &Map<String, Value>, rev1: &Revision, rev2: &Revision) -> Result<(), Problem> {
    let Some(Value::String(url)) = fields.get("git_diff_url") else { return Ok(()) };
    let Some((old, new)) = url.rsplit_once('/').and_then(|(_, pair)| pair.split_once("...")) else { return Ok(()) };
    match (Revision::from_str(old), Revision::from_str(new)) {
        (Ok(old), Ok(new)) if (&old, &new) != (rev1, rev2) => {
            Err(Problem::Contradiction("`git_diff_url` compares other commits than `rev1` and `rev2`".into()))
        }
        _ => Ok(()),
    }
}

fn test_methods(fields: &Map<String, Value>, test_file: &RepositoryPath) -> Result<Vec<MethodId>, Problem> {
    let file_name = test_file.as_str().rsplit('/').next().unwrap_or_default();
    let Some(base_name) = file_name.strip_suffix(".java").filter(|name| !name.is_empty()) else {
        return Err(Problem::Contradiction(format!("the test file `{test_file}` is no .java file")));
    };
    let methods = methods(fields, "test_methods")?;
    if methods.is_empty() {
        return Err(Problem::Contradiction("`test_methods` is empty".into()));
    }
    let mut seen = BTreeSet::new();
    for method in &methods {
        let outermost = method.class().rsplit('.').next().and_then(|class| class.split('$').next());
        if outermost != Some(base_name) {
            return Err(Problem::Contradiction(format!("the test method {method} is not of `{test_file}`")));
        }
        if !seen.insert(method) {
            return Err(Problem::Contradiction(format!("the test method {method} stands there twice")));
        }
    }
    Ok(methods)
}

fn check_test_anchors(
    fields: &Map<String, Value>,
    test_file: &RepositoryPath,
    test_methods: &[MethodId],
) -> Result<(), Problem> {
    let expected = encode_hex(&Sha256::digest(test_file.as_str()));
    for (method, anchor) in anchors(fields, "test_method_urls", test_methods)? {
        if anchor.path_sha256 != expected {
            let what = format!("the address of the test method {method} is of another file than `{test_file}`");
            return Err(Problem::Contradiction(what));
        }
    }
    Ok(())
}

fn focal_methods(fields: &Map<String, Value>) -> Result<Vec<FocalMethod>, Problem> {
    let methods = methods(fields, "dependency_methods")?;
    let mut anchors = anchors(fields, "dependency_method_urls", &methods)?;
    let mut seen = BTreeSet::new();
    // Overloads are published under one name, so a repeated name adds nothing.
    let distinct = methods.into_iter().filter(|method| seen.insert(method.clone()));
    Ok(distinct.map(|method| FocalMethod { anchor: anchors.remove(&method), method }).collect())
}

fn methods(fields: &Map<String, Value>, field: &str) -> Result<Vec<MethodId>, Problem> {
    let list = match fields.get(field) {
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong_type(field, "a list of texts")),
        None => return Err(Problem::Missing(field.into())),
    };
    if list.len() > MOST_METHODS {
        return Err(wrong_type(field, "a list of at most 10,000 methods"));
    }
    let texts = list.iter().map(|method| method.as_str().ok_or_else(|| wrong_type(field, "a list of texts")));
    texts.map(|text| parsed(field, text?)).collect()
}

/// Returns the anchors in a table of addresses by method. The table may be missing.
fn anchors(
    fields: &Map<String, Value>,
    field: &str,
    methods: &[MethodId],
) -> Result<BTreeMap<MethodId, Anchor>, Problem> {
    let table = match fields.get(field) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(table)) => table,
        Some(_) => return Err(wrong_type(field, "an object")),
    };
    let mut anchors = BTreeMap::new();
    for (method, url) in table {
        let method: MethodId = parsed(field, method)?;
        if !methods.contains(&method) {
            return Err(Problem::Contradiction(format!("`{field}` names {method}, which the task does not have")));
        }
        let url = url.as_str().ok_or_else(|| wrong_type(field, "an object of texts"))?;
        let anchor = anchor(url).ok_or_else(|| Problem::Invalid {
            field: field.to_owned(),
            source: InvalidText::new("address that ends in #diff-<sha256><L or R><line>", url),
        })?;
        anchors.insert(method, anchor);
    }
    Ok(anchors)
}

fn anchor(url: &str) -> Option<Anchor> {
    let text = url.rsplit_once("#diff-")?.1;
    let (path_sha256, rest) = text.split_at_checked(64)?;
    if !path_sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return None;
    }
    let (side, line) = match rest.split_at_checked(1)? {
        ("L", line) => (Side::Old, line),
        ("R", line) => (Side::New, line),
        _ => return None,
    };
    let digits = line.bytes().all(|b| b.is_ascii_digit());
    let line = line.parse().ok().filter(|line| digits && *line > 0)?;
    Some(Anchor { path_sha256: path_sha256.to_owned(), side, line })
}

fn date(fields: &Map<String, Value>, field: &str) -> Result<jiff::civil::Date, Problem> {
    let text = text_of(fields, field)?;
    let invalid =
        || Problem::Invalid { field: field.to_owned(), source: InvalidText::new("date of the form YYYY-MM-DD", text) };
    let date: jiff::civil::Date = text.parse().map_err(|_| invalid())?;
    // The parser also accepts times and other notations. Only this one can later be compared as text.
    if date.to_string() == text { Ok(date) } else { Err(invalid()) }
}

fn text_of<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<&'a str, Problem> {
    match fields.get(field) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(wrong_type(field, "a text")),
        None => Err(Problem::Missing(field.to_owned())),
    }
}

fn parsed<T: FromStr<Err = InvalidText>>(field: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|source| Problem::Invalid { field: field.to_owned(), source })
}

fn wrong_type(field: &str, expected: &'static str) -> Problem {
    Problem::WrongType { field: field.to_owned(), expected }
}

#[cfg(test)]
mod tests;
