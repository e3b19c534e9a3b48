//! A compiled revision without one file, so that a container finds nothing of that file except the swapped text. These
//! are left out: the file's source, its classes, classes of sources that depend on it, reports about its class, and the
//! build's lists of it. Source: protocol §2.1.

mod left_out;
mod unlisted;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fs_err as fs;

use crate::execution::build::compiled_tree::{CompiledTree, MOST_READ_BYTES, Place, TreeError};
use crate::execution::build::compiler::{Files, Input};
use crate::execution::build::prepared::{CompiledRevision, PreparedError, in_tree};
use crate::execution::build::recording::CompilerCall;
use crate::execution::container::places::PROJECT;
use crate::execution::container::temporary::{TemporaryFile, unique};
use tokio::sync::OnceCell;

use crate::artifact::store::Store;
use crate::workspace::java_source::{declared_types, mentions, package_of};

use self::left_out::{LeftOut, OwnFile};
use self::unlisted::{Unlisted, chooses};

/// Lombok's settings file, which applies to all sources below it.
const LOMBOK_SETTINGS: &str = "lombok.config";

/// How much of the file's part of the tests must be compiled with a text to get the build's own classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The text and the sources that depend on it.
    Dependents,
    /// The whole part. Its class files contain details that other class files lack, such as parameter names.
    Part,
}

/// How a compilation gave the build's own classes: of the file's own text, or of another source if there is no such
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// How much was compiled.
    pub reach: Reach,
    /// Whether annotation processors made files in that compilation. They may be made from the file's own text, and be
    /// in the tree.
    pub generates: bool,
}

/// A compiled revision without one file. Dropping it removes its files on the host.
pub struct MaskedRevision {
    /// The revision.
    pub revision: Arc<CompiledRevision>,
    /// The file that is left out, relative to the tree.
    pub test_file: String,
    /// The build's compiler call for the file's part of the tests.
    pub call: CompilerCall,
    /// Tar archive of the remaining tree.
    pub tree: TemporaryFile,
    /// Jar of the module's remaining test classes, without classes of parts that are compiled later.
    pub test_classes: TemporaryFile,
    /// The jars that replace directories of the project when its tests are compiled.
    pub inputs: BTreeMap<String, Input>,
    whole: CompiledTree,
    /// How a compilation of the file's own text gives the build's classes, or why the direct path does not fit.
    pub proven: OnceCell<Result<Proof, String>>,
    /// How long that compilation took.
    pub took: OnceLock<Duration>,
    /// The files that annotation processors make of any source. It is checked that they make the same files of the
    /// masked file, so that the tree contains nothing of it.
    pub processors: OnceCell<Result<Files, String>>,
    /// Classes that a proof must produce, by path relative to the tree: the classes that were left out, or those of the
    /// stand-in source.
    expected: BTreeSet<String>,
    /// The source that stands in for a missing file.
    shown: Option<(String, Place)>,
    /// Names of the types that the file left out declares.
    types: BTreeSet<String>,
    /// The other test sources of the file's part.
    sources: Sources,
    /// The test sources of the parts that are compiled later.
    later: Sources,
    /// The sources of tests that the build's Java compiler is not told of.
    unlisted: Unlisted,
}

/// Sources by absolute path in the container.
type Sources = Vec<(String, Place)>;

impl MaskedRevision {
    /// Leaves `test_file` out of a revision; its files are written to `temporary`.
    ///
    /// # Errors
    /// [`PreparedError`]; [`PreparedError::Unfit`] says why the direct path does not fit this file.
    pub fn new(
        store: &Store,
        revision: Arc<CompiledRevision>,
        test_file: &str,
        temporary: &Path,
    ) -> Result<Self, PreparedError> {
        if let Some(unfit) = &revision.unfit {
            return Err(PreparedError::Unfit(unfit.clone()));
        }
        let path = format!("{PROJECT}/{test_file}");
        let whole = CompiledTree::open(&store.sound(&revision.tree)?)?;
        let (part, call) = fitting_part(&whole, &revision, test_file, &path)?;
        let output = in_tree(&revision.test_output);
        let own = OwnFile::find(&whole, &call, output, test_file)?;
        if let Some(copied) = copied(&whole, &revision, test_file)? {
            return Err(PreparedError::Unfit(copied));
        }
        // No source is larger, because preparing the revision read all of them.
        if let Some((large, _)) = settings(&whole).find(|(_, place)| place.length > MOST_READ_BYTES) {
            return Err(PreparedError::Unfit(format!("`{large}` is too large to be read")));
        }
        let sources = placed(&whole, call.sources.iter().filter(|source| **source != path))?;
        let later = placed(&whole, revision.test_calls[part + 1..].iter().flat_map(|call| &call.sources))?;
        let unlisted = Unlisted::find(&whole, &revision, part, output)?;
        // Every request compiles the file's dependents, for two reasons. Their classes contain constants of the file's
        // own text. Synthetic classes of their lambdas and switches may not be made again.
        let (dependents, _) = mentioning(&whole, &sources, own.types.clone())?;
        let mut classes = own.classes;
        for (source, text) in &dependents {
            classes.extend(known_classes_of(&whole, output, source, text)?);
        }
        let mut unseen = BTreeSet::new();
        for (source, place) in &later {
            unseen.extend(known_classes_of(&whole, output, source, &whole.read(*place)?)?);
        }
        let left_out = LeftOut::new(&revision, test_file, classes.clone(), own.reported);
        let (shown, expected) = match own.exists {
            true => (None, classes),
            false => match shown(&whole, output, &sources, &path)? {
                Some((source, classes)) => (Some(source), classes),
                None => (None, BTreeSet::new()),
            },
        };
        let mut inputs = revision.inputs(store)?;
        let tree = TemporaryFile::named(temporary, "masked", "tar");
        whole.write_without(|path: &str| left_out.contains(path), &mut fs::File::create(tree.path())?)?;
        let test_classes = TemporaryFile::named(temporary, "masked", "jar");
        let jar = io::BufWriter::new(fs::File::create(test_classes.path())?);
        let jar = whole.write_jar(output, |path: &str| left_out.contains(path) || unseen.contains(path), jar)?;
        jar.into_inner().map_err(io::IntoInnerError::into_error)?;
        let name = format!("tests-{}-{}", unique(), revision.key.hex());
        inputs.insert(revision.test_output.clone(), Input { file: test_classes.path().to_owned(), name });
        Ok(Self {
            revision,
            test_file: test_file.to_owned(),
            call,
            tree,
            test_classes,
            inputs,
            proven: OnceCell::new(),
            took: OnceLock::new(),
            processors: OnceCell::new(),
            whole,
            expected,
            shown,
            types: own.types,
            sources,
            later,
            unlisted,
        })
    }

    /// Returns the file's path in the container.
    pub fn path(&self) -> String {
        format!("{PROJECT}/{}", self.test_file)
    }

    /// Returns the text that was left out; `None` where the revision has no such file.
    ///
    /// # Errors
    /// I/O errors of reading the compiled tree.
    pub fn own_text(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.whole.file(&self.test_file).map(|place| self.whole.read(place)).transpose()?)
    }

    /// Returns the source that proves the compiler where the revision has no such file: the smallest source with
    /// classes, if possible from the file's own directory.
    ///
    /// # Errors
    /// I/O errors of reading the compiled tree.
    pub fn shown(&self) -> io::Result<Option<(String, Vec<u8>)>> {
        self.shown.as_ref().map(|(path, place)| Ok((path.clone(), self.whole.read(*place)?))).transpose()
    }

    /// Returns the other sources of the file's part.
    ///
    /// # Errors
    /// I/O errors of reading the compiled tree.
    pub fn part(&self) -> io::Result<Files> {
        self.sources.iter().map(|(path, place)| Ok((path.clone(), self.whole.read(*place)?))).collect()
    }

    /// Returns the Lombok settings files in the tree, which annotation processors read, by absolute path.
    ///
    /// # Errors
    /// I/O errors of reading the compiled tree.
    pub fn settings(&self) -> io::Result<Files> {
        let settings = settings(&self.whole);
        settings.map(|(path, place)| Ok((format!("{PROJECT}/{path}"), self.whole.read(place)?))).collect()
    }

    /// Returns the first difference between `classes` and the build's own; `None` if all are equal and every expected
    /// class is among them. No classes are a difference.
    ///
    /// # Errors
    /// I/O errors of reading the compiled tree.
    pub fn unlike_build(&self, classes: &[(String, Vec<u8>)]) -> io::Result<Option<String>> {
        let output = in_tree(&self.revision.test_output);
        let mut missing = self.expected.clone();
        for (class, content) in classes {
            let path = format!("{output}/{class}");
            missing.remove(&path);
            match self.whole.file(&path) {
                Some(place) if self.whole.holds(place, content)? => {}
                Some(place) => {
                    let (length, built) = (content.len(), place.length);
                    return Ok(Some(format!("`{class}` has other bytes ({length}, the build's {built})")));
                }
                None => return Ok(Some(format!("the build made no `{class}`"))),
            }
        }
        if let Some(path) = missing.first() {
            let class = path.strip_prefix(output).map_or(path.as_str(), |rest| rest.trim_start_matches('/'));
            return Ok(Some(format!("`{class}` is missing")));
        }
        Ok(classes.is_empty().then(|| "no class came out".to_owned()))
    }

    /// Returns the other test sources that must be compiled again with `text` in the file's place, by path and content.
    ///
    /// These are the sources that mention a type that the file declares now or declared before. Sources that mention a
    /// type of those count as well, because inherited members can be used without naming their type. `None` if a source
    /// of a later part mentions such a type: only Maven compiles several parts. `None` as well if a source that the
    /// build's Java compiler is not told of may depend on the file, or `text` on it.
    ///
    /// # Errors
    /// I/O errors of reading the compiled tree.
    pub fn dependents(&self, text: &[u8]) -> io::Result<Option<Files>> {
        let mut names: BTreeSet<String> = declared_types(text);
        names.extend(self.types.iter().cloned());
        let (found, every) = mentioning(&self.whole, &self.sources, names)?;
        for (_, place) in self.later.iter().chain(&self.unlisted.sources) {
            if mentions(&self.whole.read(*place)?, &every) {
                return Ok(None);
            }
        }
        Ok((!self.unlisted.touched_by(text, &every)).then_some(found))
    }

    /// Sorts the sources as Maven's compiler plugin passes them to the compiler. If the recorded order is that of a
    /// hash set of paths, it is kept for the new set; otherwise the file comes last.
    pub fn ordered(&self, sources: &mut [String]) {
        let recorded = &self.call.sources;
        let mut all = recorded.clone();
        if hash_order(recorded) == *recorded {
            let path = self.path();
            if !all.contains(&path) {
                all.push(path);
            }
            all = hash_order(&all);
        }
        sources.sort_by_key(|source| all.iter().position(|known| known == source).unwrap_or(usize::MAX));
    }
}

/// Returns files beside sources that annotation processors look for.
fn settings(whole: &CompiledTree) -> impl Iterator<Item = (&str, Place)> {
    whole.files_below("").filter(|(path, _)| path.rsplit('/').next() == Some(LOMBOK_SETTINGS))
}

/// Returns why masking the file would not remove everything that the build made of it: it is also compiled as a main
/// class, or copied as a resource. `None` if masking removes everything.
fn copied(whole: &CompiledTree, revision: &CompiledRevision, test_file: &str) -> Result<Option<String>, TreeError> {
    let path = format!("{PROJECT}/{test_file}");
    if revision.main_calls.iter().any(|call| call.sources.contains(&path)) {
        return Ok(Some("the file is compiled as a main class too".to_owned()));
    }
    let name = test_file.rsplit('/').next().unwrap_or_default();
    let mut outputs: Vec<&str> = revision.main_calls.iter().map(|call| in_tree(&call.output)).collect();
    outputs.extend([in_tree(&revision.output), in_tree(&revision.test_output)]);
    for output in outputs {
        if whole.files_below(output).any(|(path, _)| path.rsplit('/').next() == Some(name)) {
            return Ok(Some("the build copies the file among the classes".to_owned()));
        }
    }
    let Some(own) = whole.file(test_file) else { return Ok(None) };
    let text = whole.read(own)?;
    for (path, place) in whole.files_below("") {
        if path != test_file && whole.holds(place, &text)? {
            return Ok(Some(format!("`{path}` is a copy of the file")));
        }
    }
    Ok(None)
}

/// Returns the sources that mention one of the types, or a type of such sources in turn, and the names of all these types.
fn mentioning(
    whole: &CompiledTree,
    sources: &Sources,
    types: BTreeSet<String>,
) -> Result<(Files, BTreeSet<String>), TreeError> {
    let (mut names, mut every) = (types.clone(), types);
    let mut rest: Vec<&(String, Place)> = sources.iter().collect();
    let mut found = Vec::new();
    while !names.is_empty() {
        let mut next = BTreeSet::new();
        let mut left = Vec::new();
        for source in rest {
            let content = whole.read(source.1)?;
            if mentions(&content, &names) {
                next.extend(declared_types(&content));
                found.push((source.0.clone(), content));
            } else {
                left.push(source);
            }
        }
        rest = left;
        every.extend(next.iter().cloned());
        names = next;
    }
    Ok((found, every))
}

/// A source that stands in for a missing file, and its classes.
type ShownSource = ((String, Place), BTreeSet<String>);

/// Returns the smallest source with classes, and these classes. Sources in the directory of `path` come first.
fn shown(whole: &CompiledTree, output: &str, sources: &Sources, path: &str) -> Result<Option<ShownSource>, TreeError> {
    let directory = |path: &str| path.rsplit_once('/').map(|(directory, _)| directory.to_owned());
    let own = directory(path);
    let mut sources: Vec<&(String, Place)> = sources.iter().collect();
    sources.sort_by_key(|(path, place)| (directory(path) != own, place.length, path));
    for (source, place) in sources {
        match classes_of(whole, output, source, &whole.read(*place)?)? {
            Some(classes) if !classes.is_empty() => return Ok(Some(((source.clone(), *place), classes))),
            _ => {}
        }
    }
    Ok(None)
}

/// Returns the compilation that the file belongs to, and its place among the revision's compilations of tests.
fn fitting_part(
    whole: &CompiledTree,
    revision: &CompiledRevision,
    test_file: &str,
    path: &str,
) -> Result<(usize, CompilerCall), PreparedError> {
    let (part, call) = match part_of(&revision.test_calls, path) {
        Ok((part, call)) => (part, call.clone()),
        Err(unfit) => return Err(PreparedError::Unfit(unfit.to_owned())),
    };
    let exists = whole.file(test_file).is_some();
    let is_listed = call.sources.iter().any(|source| source == path);
    if exists != is_listed || (!exists && !chooses(&call, path)) {
        return Err(PreparedError::Unfit("the build's patterns of test sources leave the file out".to_owned()));
    }
    Ok((part, call))
}

/// Returns the places of sources in the tree.
fn placed<'a>(whole: &CompiledTree, sources: impl Iterator<Item = &'a String>) -> Result<Sources, PreparedError> {
    let place = |source: &String| Some((source.clone(), whole.file(in_tree(source))?));
    let placed: Option<Sources> = sources.map(place).collect();
    placed.ok_or_else(|| PreparedError::Unfit("the build takes sources of tests away".to_owned()))
}

/// Returns the paths of a source's classes, as [`classes_of`] does. The direct path does not fit where they are unknown.
fn known_classes_of(
    whole: &CompiledTree,
    output: &str,
    source: &str,
    text: &[u8],
) -> Result<BTreeSet<String>, PreparedError> {
    let unknown = || PreparedError::Unfit("test classes do not say which source they come from".to_owned());
    classes_of(whole, output, source, text)?.ok_or_else(unknown)
}

/// Returns the compilation that a file (absolute path) belongs to, or why there is none.
fn part_of<'a>(calls: &'a [CompilerCall], path: &str) -> Result<(usize, &'a CompilerCall), &'static str> {
    if let Some(found) = calls.iter().enumerate().find(|(_, call)| call.sources.iter().any(|source| source == path)) {
        return Ok(found);
    }
    let below = |root: &String| path.strip_prefix(root.as_str()).is_some_and(|rest| rest.starts_with('/'));
    let mut fitting = calls.iter().enumerate().filter(|(_, call)| call.source_roots.iter().any(below));
    match (fitting.next(), fitting.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => Err("the file lies in no directory of tests that is compiled"),
        (Some(_), Some(_)) => Err("the file lies in a directory of tests that is compiled in parts"),
    }
}

/// Returns the binary names that a file's class may have, given its absolute path and the source roots.
fn classes_at(call: &CompilerCall, path: &str) -> BTreeSet<String> {
    let below = |root: &String| path.strip_prefix(root.as_str())?.strip_prefix('/')?.strip_suffix(".java");
    call.source_roots.iter().filter_map(below).map(|path| path.replace('/', ".")).collect()
}

/// Returns the paths of the classes below `output` that come from a source; `None` if that is unknown.
fn classes_of(
    whole: &CompiledTree,
    output: &str,
    source: &str,
    text: &[u8],
) -> Result<Option<BTreeSet<String>>, TreeError> {
    let package = package_of(text).replace('.', "/");
    let directory = if package.is_empty() { output.to_owned() } else { format!("{output}/{package}") };
    whole.classes_of(&directory, &package, source.rsplit('/').next().unwrap_or_default())
}

/// Returns the paths in the order of a `java.util.HashSet` that they were added to one by one. Paths whose buckets collide
/// keep the given order.
fn hash_order(paths: &[String]) -> Vec<String> {
    let mut capacity: u32 = 16;
    while f64::from(capacity) * 0.75 < paths.len() as f64 {
        capacity *= 2;
    }
    let bucket = |path: &String| {
        let hash = path.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
        let hash = hash.cast_unsigned();
        (hash ^ (hash >> 16)) & (capacity - 1)
    };
    let mut ordered = paths.to_vec();
    ordered.sort_by_key(bucket);
    ordered
}

#[cfg(test)]
pub(in crate::execution) mod tests;
