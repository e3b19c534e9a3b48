//! Packs the warm compiler's inputs from a compiled tree, and checks that it can compile with them as the build did.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Seek as _};
use std::path::Path;

use super::fitness::{rewritten, unfit};
use super::{PreparedError, in_tree};
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::execution::build::compiled_tree::{CompiledTree, EntryKind};
use crate::execution::build::recording::{CompilerCall, Recording};
use crate::execution::container::places::within;
use crate::outcome::launch::shortened;

/// A build whose compiled tree is looked at.
pub(super) struct Sources<'a> {
    /// Tar archive of the tree that was built.
    pub(super) source: &'a Path,
    /// The module's `groupId:artifactId`.
    pub(super) project: &'a str,
    /// The compiler calls for the module's tests.
    pub(super) test_calls: &'a [CompilerCall],
    /// The directory of the module's test classes.
    pub(super) test_output: &'a str,
}

/// The warm compiler's inputs from a compiled tree.
pub(super) struct Looked {
    /// As [`super::CompiledRevision::jars`].
    pub(super) jars: BTreeMap<String, Digest>,
    /// As [`super::CompiledRevision::generates`].
    pub(super) generates: bool,
    /// As [`super::CompiledRevision::unfit`].
    pub(super) unfit: Option<String>,
}

/// Looks through a compiled tree in the store, and packs what compilers find classes in.
///
/// # Errors
/// [`PreparedError`]; [`PreparedError::Unfit`] is no fault of ours.
pub(super) fn look(
    store: &Store,
    tree: &Digest,
    recording: &Recording,
    build: &Sources<'_>,
) -> Result<Looked, PreparedError> {
    let tree = CompiledTree::open(&store.path(tree))?;
    let rewritten = rewritten(build.source, &tree, build.test_calls)?;
    let unfit = unfit(recording, build.project, build.test_calls, build.test_output).or(rewritten);
    let mut generated = build.test_calls.iter().filter_map(|call| call.generated_sources.as_deref()).map(in_tree);
    let generates = generated.any(|path| tree.files_below(path).next().is_some());
    let mut jars = BTreeMap::new();
    let mut unclear = None;
    for path in on_paths(recording, build.test_output) {
        let mut writer = store.writer()?;
        match within(path).map(|within| (tree.at(&within), within)) {
            Some((EntryKind::File(place), _)) => tree.copy(place, &mut writer)?,
            Some((EntryKind::Directory, directory)) => {
                let mut jar = tree.write_jar(&directory, |_| false, store.unnamed_file()?)?;
                jar.rewind()?;
                io::copy(&mut jar, &mut writer)?;
            }
            // Compilers pass over what is not there.
            Some((EntryKind::Nothing, _)) | None => continue,
            Some((EntryKind::Unclear, path)) => {
                unclear = Some(format!("`{path}` is no file and no directory, and compilers look for classes there"));
                continue;
            }
        }
        jars.insert(path.to_owned(), writer.commit()?.0);
    }
    let told = || build.test_calls.iter().find_map(|call| told_of(call, &tree, &jars, build.test_output));
    let unfit = unfit.or(unclear).or_else(told).map(|reason| shortened(&reason));
    Ok(Looked { jars, generates, unfit })
}

/// Returns what some compiler looks for classes in, but for the module's test classes.
fn on_paths<'a>(recording: &'a Recording, test_output: &str) -> BTreeSet<&'a str> {
    let paths = recording.compilations.iter().flat_map(|call| {
        let lists = [&call.class_path, &call.module_path, &call.processor_path];
        lists.into_iter().flatten().chain(std::iter::once(&call.output))
    });
    paths.map(String::as_str).filter(|path| *path != test_output).collect()
}

/// Options whose value is a directory to write to.
const WRITTEN: [&str; 3] = ["-d", "-s", "-h"];

/// Returns why a compiler that sees nothing of the tree but `jars` and its sources may not do as it is told, if so: an
/// argument names something else of the tree.
fn told_of(
    call: &CompilerCall,
    tree: &CompiledTree,
    jars: &BTreeMap<String, Digest>,
    test_output: &str,
) -> Option<String> {
    let directories = [test_output, &call.output].into_iter().chain(call.generated_sources.as_deref());
    let directories = directories.chain(call.source_roots.iter().map(String::as_str));
    let known: BTreeSet<Option<String>> = directories.map(within).collect();
    let before = std::iter::once("").chain(call.arguments.iter().map(String::as_str));
    for (before, argument) in before.zip(&call.arguments) {
        if WRITTEN.contains(&before) {
            continue;
        }
        // Of processors' own arguments nobody knows the form.
        let lists = argument.split([':', '=']).chain(argument.split([':', '=', ',', ';', '@', ' ', '"', '\'']));
        for path in lists
            .filter(|path| path.contains(['/', '.']) && !jars.contains_key(*path) && !known.contains(&within(path)))
        {
            match within(path).map(|within| (tree.at(&within), within)) {
                Some((EntryKind::Nothing, _)) | None => {}
                Some((_, within)) => return Some(format!("the compiler of the tests is told of `{within}`")),
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;
    use crate::execution::direct::write_files;

    /// Returns what comes of looking at a tree of these files with this recording, in which all calls are of tests.
    fn looked(files: &[(&str, &[u8])], call: &serde_json::Value) -> (Store, tempfile::TempDir, Looked) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), directory.path()).unwrap();
        let source = directory.path().join("source.tar");
        write_files(&source, files.iter().copied()).unwrap();
        let tree = store.put(&fs::read(&source).unwrap()).unwrap();
        let call: CompilerCall = serde_json::from_value(call.clone()).unwrap();
        let recording = Recording { compilations: vec![call], ..Recording::default() };
        let build = Sources {
            source: &source,
            project: "g:a",
            test_calls: &recording.compilations,
            test_output: "/work/project/target/test-classes",
        };
        let looked = look(&store, &tree, &recording, &build).unwrap();
        (store, directory, looked)
    }

    #[test]
    fn what_compilers_read_of_the_project_is_given_to_the_warm_one() {
        let files: [(&str, &[u8]); 5] = [
            ("src/ATest.java", b"class ATest {}"),
            ("lib/own.jar", b"jar"),
            ("target/classes/A.class", b"main"),
            ("target/test-classes/ATest.class", b"test"),
            ("data/x.txt", b"data"),
        ];
        let call = |class_path: &[&str], arguments: &[&str]| {
            serde_json::json!({
                "project": "g:a", "goal": "testCompile", "compiler": "javac", "arguments": arguments,
                "sources": ["/work/project/src/ATest.java"], "source_roots": ["/work/project/src"], "proc": null,
                "generated_sources": "/work/project/target/generated", "class_path": class_path,
                "output": "/work/project/target/test-classes",
            })
        };
        let [jar, beside, classes] =
            ["/work/project/lib/own.jar", "/work/project/app/../lib/own.jar", "/work/project/target/classes"];
        let list = format!("/work/project/target/test-classes:{classes}:{jar}:/m2/a.jar:/work/project/none");
        let elements: Vec<&str> = list.split(':').chain([beside]).collect();
        let arguments = ["-d", "/work/project/target/test-classes", "-classpath", &list, "-sourcepath"];
        let roots = "/work/project/src:/work/project/target/generated:";
        let fit = call(&elements, &[&arguments[..], &[roots, "-Xlint:all", "-Akey=1.8"]].concat());
        let (store, _directory, looked_at) = looked(&files, &fit);
        assert_eq!(looked_at.unfit, None);
        assert_eq!(looked_at.jars.keys().map(String::as_str).collect::<Vec<_>>(), [beside, jar, classes]);
        for path in [jar, beside] {
            assert_eq!(store.read(&looked_at.jars[path]).unwrap(), b"jar");
        }
        for argument in [
            "-Adata=/work/project/data/x.txt",
            "-Adata=data/x.txt",
            "-Adata=file:/work/project/./data",
            "-Xplugin:Check \"-config data/x.txt\"",
            "@data/x.txt",
            "-Aroot=/work/project",
            "-Aroot=.",
            "-processorpath=/work/project/lib/own.jar/../../data",
        ] {
            let unfit = looked(&files, &call(&elements, &[&arguments[..4], &[argument]].concat())).2.unfit;
            assert!(unfit.is_some_and(|reason| reason.contains("is told of")), "{argument}");
        }
        for argument in ["-Adata=/opt/data/x.txt", "-Adata=../data/x.txt", "-Adata=/work/projects/data/x.txt"] {
            assert_eq!(looked(&files, &call(&elements, &[argument])).2.unfit, None, "{argument}");
        }
    }

    #[test]
    fn what_a_link_leads_to_is_unfit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tree.tar");
        let mut builder = tar::Builder::new(fs::File::create(&path).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, "lib", "/elsewhere").unwrap();
        builder.into_inner().unwrap();
        let tree = CompiledTree::open(&path).unwrap();
        assert_eq!(["lib", "lib/own.jar", "libs"].map(|path| tree.at(path)), {
            [EntryKind::Unclear, EntryKind::Unclear, EntryKind::Nothing]
        });
    }
}
