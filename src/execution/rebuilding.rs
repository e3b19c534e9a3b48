//! The same behaviour in other bytes: classes of focal methods' source files, rebuilt for one launch.
//!
//! A test that looks at class files must not tell new code from a mutant by them. So the control that rebuilds new code and each launch
//! on a mutant change the classes of the same source files, with random numbers of their own. docs/security.md has the reasons.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

use super::build::compiled_tree::TreeError;
use super::build::compiler::Files;
use super::build::merged::OpenTree;
use super::container::places::within;
use super::launch::coverage::{SourceFile, class_directories};
use crate::workspace::class_file::edit::rebuilt;

/// Class files, and the source file of each.
pub(super) type FocalClasses = Vec<(String, Vec<u8>, SourceFile)>;

/// Returns the classes of focal methods' source files, or why there are none.
pub(super) fn focal_classes(
    tree: &OpenTree,
    class_path: &[String],
    sources: &BTreeSet<SourceFile>,
) -> Result<Result<FocalClasses, String>, TreeError> {
    if sources.is_empty() {
        return Ok(Err("there is no focal method on new code".to_owned()));
    }
    let mut classes = Vec::new();
    for directory in class_directories(class_path).into_iter().filter_map(|directory| within(directory)) {
        for source in sources {
            let SourceFile { package, name } = source;
            let directory = match package.is_empty() {
                true => directory.clone(),
                false => format!("{directory}/{package}"),
            };
            let Some(found) = tree.classes_of(&directory, package, name)? else {
                return Ok(Err(format!("a class file in `{directory}` does not say which source it comes from")));
            };
            for path in found {
                if let Some(bytes) = tree.read(&path)? {
                    classes.push((path, bytes, source.clone()));
                }
            }
        }
    }
    Ok(match classes.is_empty() {
        true => Err("the source files of focal methods have no class".to_owned()),
        false => Ok(classes),
    })
}

/// Returns other bytes of all these classes, or why one of the method's `own` can't have them. Another method's class that can't keeps
/// its bytes, as in launches on mutants.
pub(super) fn rebuilt_all(own: &FocalClasses, all: &FocalClasses, random: &mut ChaCha8Rng) -> Result<Files, String> {
    let one = |(path, bytes, _): &(String, Vec<u8>, _)| match rebuilt(bytes, random) {
        Ok(content) => Ok((path.clone(), content)),
        Err(_) if own.iter().all(|(own, ..)| own != path) => Ok((path.clone(), bytes.clone())),
        Err(error) => Err(format!("`{path}`: {error}")),
    };
    all.iter().map(one).collect()
}

/// Returns a mutant's files, with other bytes of the same behaviour in its classes, and in all others of the sources. So a launch
/// on a mutant and the control that rebuilds new code can only be told apart by what the code does.
///
/// # Errors
/// I/O errors of reading the tree.
pub(super) fn rebuilt_mutant(
    tree: &OpenTree,
    class_path: &[String],
    sources: &[SourceFile],
    mutant: Files,
    seed: u64,
) -> std::io::Result<Files> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let sources: BTreeSet<SourceFile> = sources.iter().cloned().collect();
    let found = focal_classes(tree, class_path, &sources).map_err(std::io::Error::from)?;
    Ok(rebuilt_with(&found.unwrap_or_default(), mutant, &mut random))
}

/// Returns these classes, some with other content, all of them rebuilt. A class that can't be rebuilt keeps its bytes.
pub(super) fn rebuilt_with(classes: &FocalClasses, changed: Files, random: &mut ChaCha8Rng) -> Files {
    let mut files: BTreeMap<String, Vec<u8>> =
        classes.iter().map(|(path, bytes, _)| (path.clone(), bytes.clone())).collect();
    files.extend(changed);
    for (path, bytes) in &mut files {
        if path.ends_with(".class")
            && let Ok(other) = rebuilt(bytes, random)
        {
            *bytes = other;
        }
    }
    files.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::container::places::PROJECT;
    use crate::execution::scripted;
    use crate::workspace::class_file::ClassFacts;

    /// Classes of one source file, which `control::hollow` describes.
    const CLASSES: [(&str, &[u8]); 3] = [
        ("main/shop/Between.class", include_bytes!("control/hollow/Between.class")),
        ("main/shop/PriceTest$Inner.class", include_bytes!("control/hollow/PriceTest$Inner.class")),
        ("main/shop/PriceTest.class", include_bytes!("control/hollow/PriceTest.class")),
    ];

    /// The bytes of a class do not tell whether it is a mutant's, another one's beside it, or new code's under the control.
    #[tokio::test]
    async fn a_mutant_has_other_bytes_in_all_classes_of_the_sources() {
        let directory = tempfile::tempdir().unwrap();
        let tree = scripted::open_tree(directory.path(), CLASSES.into_iter()).await;
        let class_path = [format!("{PROJECT}/test"), format!("{PROJECT}/main")];
        let sources = [SourceFile { package: "shop".to_owned(), name: "PriceTest.java".to_owned() }];
        let mutant = || -> Files {
            let made = include_bytes!("control/hollow/Far.class").to_vec();
            vec![(CLASSES[2].0.to_owned(), made), ("main/text.txt".to_owned(), b"text".to_vec())]
        };
        let [one, other] = [1, 2].map(|seed| rebuilt_mutant(&tree, &class_path, &sources, mutant(), seed).unwrap());
        let paths: Vec<&str> = one.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, [CLASSES[0].0, CLASSES[1].0, CLASSES[2].0, "main/text.txt"]);
        for ((path, content), (_, of_other)) in one.iter().zip(&other) {
            let before = mutant().into_iter().find(|(mutated, _)| mutated == path).map(|(_, bytes)| bytes);
            let before = before.unwrap_or_else(|| CLASSES.iter().find(|(own, _)| own == path).unwrap().1.to_vec());
            let is_class = path.ends_with(".class");
            assert_eq!((*content != before, content != of_other), (is_class, is_class), "{path}");
            assert_eq!(ClassFacts::read(content).ok(), ClassFacts::read(&before).ok(), "{path}");
        }
    }
}
