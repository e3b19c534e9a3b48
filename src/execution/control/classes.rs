//! The class files of controls: which classes of a built tree are rewritten, and how.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use super::hollow::{forms, hollow};
use super::{Control, OldCode};
use crate::execution::build::compiler::Files;
use crate::execution::build::merged::OpenTree;
use crate::execution::container::places::within;
use crate::execution::launch::coverage::{SourceFile, class_directories};
use crate::execution::rebuilding::{FocalClasses, focal_classes, rebuilt_all, rebuilt_with};
use crate::submission::mentions::{Finding, findings, unreadable};
use crate::task::MethodId;
use crate::workspace::class_file::MOST_CLASS_BYTES;
use crate::workspace::class_file::edit::{Code, MethodFacts, with_code, with_code_of};

/// Lines of a focal method in its source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FocalExtent {
    /// Package of the source file, parts by `/`.
    pub package: String,
    /// Name of the source file.
    pub file: String,
    /// Its first line, counted from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
}

impl FocalExtent {
    /// Returns the source file.
    fn source(&self) -> SourceFile {
        SourceFile { package: self.package.clone(), name: self.file.clone() }
    }
}

/// The class files of each control, or why it is not applicable.
pub struct ControlClasses {
    throwing: Result<Files, String>,
    emptied: Result<Files, String>,
    rebuilt: Result<Files, String>,
    old_bodies: Result<Files, String>,
}

impl ControlClasses {
    /// Makes the class files for the controls of a test method. `sources` are those of all focal methods of the task: the classes of
    /// these have other bytes in each launch on a mutant as well.
    ///
    /// # Errors
    /// I/O errors of reading the tree.
    pub fn of(
        tree: &OpenTree,
        class_path: &[String],
        test: (&str, &MethodId),
        (extents, sources): (&[FocalExtent], &[SourceFile]),
        old: &OldCode,
        seed: u64,
    ) -> std::io::Result<Self> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // The message reveals nothing, and no test can expect it.
        let message = format!("{:016x}", random.next_u64());
        let own: BTreeSet<SourceFile> = extents.iter().map(FocalExtent::source).collect();
        let (throwing, rebuilt, old_bodies) =
            match focal_classes(tree, class_path, &own).map_err(std::io::Error::from)? {
                Ok(own) => {
                    let throwing = throwing(&own, extents, &message);
                    let sources: BTreeSet<SourceFile> = sources.iter().cloned().collect();
                    let all = focal_classes(tree, class_path, &sources).map_err(std::io::Error::from)?;
                    let all = all.as_ref().unwrap_or(&own);
                    let rebuilt = rebuilt_all(&own, all, &mut random);
                    // A test that lists the bytes of changed classes must find those of no control among them.
                    let mut in_other_bytes =
                        |changed: Result<Files, String>| changed.map(|changed| rebuilt_with(all, changed, &mut random));
                    let old_bodies = in_other_bytes(old_bodies(&own, extents, &message, old)?);
                    (in_other_bytes(throwing), rebuilt, old_bodies)
                }
                Err(reason) => (Err(reason.clone()), Err(reason.clone()), Err(reason)),
            };
        let emptied = match forms(tree, class_path, test)?.first() {
            Some(form) => hollow(tree, class_path, test, *form)?,
            None => Err("no class of the test file declares the method".to_owned()),
        };
        Ok(Self { throwing, emptied, rebuilt, old_bodies })
    }

    /// Returns the files of a control.
    ///
    /// # Errors
    /// Why the control is not applicable.
    pub fn files(&self, control: Control) -> Result<Files, String> {
        match control {
            Control::Canary => self.throwing.clone(),
            Control::CanaryEmptied => {
                let (throwing, emptied) = (self.throwing.clone()?, self.emptied.clone()?);
                Ok(throwing.into_iter().chain(emptied).collect())
            }
            Control::Null => self.rebuilt.clone(),
            Control::OldBodies => self.old_bodies.clone(),
        }
    }
}

fn throwing(classes: &FocalClasses, extents: &[FocalExtent], message: &str) -> Result<Files, String> {
    let mut files = Files::new();
    for (path, bytes, source) in classes {
        let is_focal = is_focal(extents, source);
        let written = with_code(bytes, |facts| is_focal(facts).then_some(Code::Throws(message)));
        if let Some(content) = written.map_err(|error| format!("`{path}`: {error}"))? {
            files.push((path.clone(), content));
        }
    }
    match files.is_empty() {
        true => Err("no focal method has code with lines on new code".to_owned()),
        false => Ok(files),
    }
}

/// Puts old code's bodies into focal methods. Those that old code lacks throw, as a call of a missing method does.
fn old_bodies(
    classes: &FocalClasses,
    extents: &[FocalExtent],
    message: &str,
    old: &OldCode,
) -> std::io::Result<Result<Files, String>> {
    let tree = match &old.tree {
        Ok(tree) => tree,
        Err(reason) => return Ok(Err(reason.cause.clone())),
    };
    let (mut files, mut has_code) = (Files::new(), false);
    for (path, bytes, source) in classes {
        let is_focal = is_focal(extents, source);
        let written = match tree.file(path) {
            Some(place) if place.length > MOST_CLASS_BYTES => {
                return Ok(Err(format!("`{path}` of old code is too large to be read")));
            }
            Some(place) => {
                let of_old = tree.read(place).map_err(std::io::Error::from)?;
                let grafted = with_code_of(bytes, &of_old, message, is_focal);
                grafted.map(|grafted| grafted.inspect(|one| has_code |= one.has_code).map(|one| one.class))
            }
            None => with_code(bytes, |facts| is_focal(facts).then_some(Code::Throws(message))),
        };
        match written {
            Ok(written) => files.extend(written.map(|content| (path.clone(), content))),
            Err(error) => return Ok(Err(format!("`{path}`: {error}"))),
        }
    }
    Ok(match has_code {
        true => Ok(files),
        false => Err("old code has none of the focal methods".to_owned()),
    })
}

/// Tells which methods of a source's classes are focal.
fn is_focal<'a>(extents: &'a [FocalExtent], source: &SourceFile) -> impl Fn(&MethodFacts<'_>) -> bool + 'a {
    let of_source: Vec<&FocalExtent> = extents.iter().filter(|extent| extent.source() == *source).collect();
    move |method| {
        let is_within =
            |line: &usize| of_source.iter().any(|extent| (extent.first_line..=extent.last_line).contains(line));
        match method.name.as_ref() {
            // A constructor also has the lines of the fields' initial values.
            "<init>" => method.lines.iter().any(is_within),
            _ => !method.lines.is_empty() && method.lines.iter().all(is_within),
        }
    }
}

/// Returns what the classes of a test file mention. A class that can't be read is a finding too, and no error.
pub(super) fn findings_of(
    tree: &OpenTree,
    class_path: &[String],
    (class, file): (&str, &str),
) -> std::io::Result<Vec<Finding>> {
    let Some(tests) = class_path.first().and_then(|directory| within(directory)) else { return Ok(Vec::new()) };
    let package = class.rsplit_once('.').map(|(package, _)| package.replace('.', "/")).unwrap_or_default();
    let directory = if package.is_empty() { tests } else { format!("{tests}/{package}") };
    let Some(paths) = tree.classes_of(&directory, &package, file).map_err(std::io::Error::from)? else {
        return Ok(unreadable("a class file of the test's package does not say which source it comes from"));
    };
    let mut classes = Vec::new();
    for path in paths {
        classes.extend(tree.read(&path).map_err(std::io::Error::from)?);
    }
    // Other modules' test classes are no production code.
    let directories = class_directories(class_path).into_iter().filter(|path| !path.ends_with("/test-classes"));
    let directories = directories.filter_map(|directory| within(directory));
    let production = directories.flat_map(|directory| tree.class_names(&directory)).collect();
    let found = findings(classes.iter().map(Vec::as_slice), &production);
    Ok(found.unwrap_or_else(|error| unreadable(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::execution::build::compiled_tree::CompiledTree;
    use crate::execution::container::places::PROJECT;
    use crate::execution::direct::write_files;
    use crate::execution::fault::NoAnswer;
    use crate::execution::scripted;

    /// A list of the bytes of new code's classes, which are in every launch under these controls, names none of them.
    #[tokio::test]
    async fn classes_without_a_focal_method_have_other_bytes_under_every_control() {
        let directory = tempfile::tempdir().unwrap();
        let beside = ("main/shop/PriceTest$Inner.class", include_bytes!("hollow/PriceTest$Inner.class").as_slice());
        let tree = scripted::open_tree(directory.path(), [(PATH, CLASS), beside].into_iter()).await;
        let class_path = [format!("{PROJECT}/test"), format!("{PROJECT}/main")];
        let source = SourceFile { package: "shop".to_owned(), name: "PriceTest.java".to_owned() };
        let (package, file) = (source.package.clone(), source.name.clone());
        let extents = [FocalExtent { package, file, first_line: 10, last_line: 13 }];
        let archive = directory.path().join("old.tar");
        write_files(&archive, [(PATH, CLASS), beside].into_iter()).unwrap();
        let old = OldCode { tree: Ok(Arc::new(CompiledTree::open(&archive).unwrap())) };
        let method = "ATest#x".parse().unwrap();
        let made = |seed| {
            let (test, focal) = (("shop.ATest", &method), (&extents[..], std::slice::from_ref(&source)));
            ControlClasses::of(&tree, &class_path, test, focal, &old, seed).unwrap()
        };
        let [one, other] = [1, 2].map(made);
        for control in [Control::Canary, Control::OldBodies, Control::Null] {
            let of = |made: &ControlClasses| {
                let files = made.files(control).unwrap();
                files.into_iter().find(|(path, _)| path == beside.0).map(|(_, bytes)| bytes)
            };
            let [one, other] = [&one, &other].map(|made| of(made).unwrap_or_else(|| panic!("{control:?}")));
            assert!(one != other && one != beside.1 && other != beside.1, "{control:?}");
        }
    }

    const PATH: &str = "main/shop/PriceTest.class";
    const CLASS: &[u8] = include_bytes!("../../submission/mentions/PriceTest.class");

    /// Old code decides whether the control is applicable. A fault that hides old code is no such decision.
    #[test]
    fn focal_methods_get_the_bodies_that_old_code_has() {
        let directory = tempfile::tempdir().unwrap();
        let source = SourceFile { package: "shop".to_owned(), name: "PriceTest.java".to_owned() };
        let classes = vec![(PATH.to_owned(), CLASS.to_vec(), source)];
        let (package, file) = ("shop".to_owned(), "PriceTest.java".to_owned());
        let extents = [FocalExtent { package, file, first_line: 1, last_line: 10_000 }];
        let of = |extents: &[FocalExtent], files: &[(&str, &[u8])]| {
            let archive = directory.path().join("old.tar");
            write_files(&archive, files.iter().copied()).unwrap();
            let old = OldCode { tree: Ok(Arc::new(CompiledTree::open(&archive).unwrap())) };
            assert!(!old.is_lost());
            old_bodies(&classes, extents, "x", &old).unwrap()
        };
        let files = of(&extents, &[(PATH, CLASS)]).unwrap();
        let [(path, content)] = files.as_slice() else { panic!("{} files", files.len()) };
        assert!(path == PATH && content.len() > CLASS.len());
        let none = Err("old code has none of the focal methods".to_owned());
        assert_eq!(of(&extents, &[("main/shop/Other.class", CLASS)]), none);
        assert_eq!(of(&[], &[(PATH, CLASS)]), none);
        let large = vec![0; usize::try_from(MOST_CLASS_BYTES).unwrap() + 1];
        assert!(of(&extents, &[(PATH, &large)]).is_err_and(|reason| reason.contains("too large to be read")));
        assert!(of(&extents, &[(PATH, b"no class")]).is_err_and(|reason| reason.contains("not a class file")));

        for (reason, is_lost) in [(NoAnswer::fault("a fault"), true), (NoAnswer::never("a reason"), false)] {
            let old = OldCode { tree: Err(reason.clone()) };
            assert_eq!(old.is_lost(), is_lost);
            assert_eq!(old_bodies(&classes, &extents, "x", &old).unwrap(), Err(reason.cause));
        }
    }
}
