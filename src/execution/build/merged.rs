//! A built tree with some files replaced, such as the classes of a mutant. They are written into the tree's archives on
//! the host. So a container gets the same inputs with the same names in the same order, and cannot tell which files
//! were replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;

use crate::execution::build::built::Built;
use crate::execution::build::compiled_tree::{CompiledTree, EntryKind, TreeError};
use crate::execution::build::compiler::Files;
use crate::execution::container::temporary::TemporaryFile;
use crate::thread::blocking;

/// A built tree whose archives can be read.
#[derive(Clone)]
pub struct OpenTree {
    trees: Arc<Vec<(PathBuf, CompiledTree)>>,
}

impl OpenTree {
    /// Opens the archives of a built tree.
    ///
    /// # Errors
    /// [`TreeError`].
    pub async fn of(built: &Built) -> Result<Self, TreeError> {
        let archives = built.archives.clone();
        let open = move || {
            let open = |path: PathBuf| CompiledTree::open(&path).map(|tree| (path, tree));
            archives.into_iter().map(open).collect::<Result<Vec<_>, TreeError>>()
        };
        Ok(Self { trees: Arc::new(blocking(open).await?) })
    }

    /// Returns what a launch finds at a path relative to the tree: a file's content, or `None`.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        match self.last_with(path) {
            Some((tree, EntryKind::File(place))) => tree.read(place).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the classes directly in `directory` whose class files name this source file, by path relative to the tree.
    /// `None` where a class file there names no source file or is malformed.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn classes_of(
        &self,
        directory: &str,
        package: &str,
        source_file: &str,
    ) -> Result<Option<BTreeSet<String>>, TreeError> {
        let mut classes = BTreeSet::new();
        for (_, tree) in self.trees.iter() {
            let Some(found) = tree.classes_of(directory, package, source_file)? else { return Ok(None) };
            classes.extend(found);
        }
        Ok(Some(classes))
    }

    /// Returns the binary names of all classes below a directory, with slashes.
    pub fn class_names(&self, directory: &str) -> BTreeSet<String> {
        let paths = self.trees.iter().flat_map(|(_, tree)| tree.files_below(directory).map(|(path, _)| path));
        let names = paths.filter_map(|path| path.strip_suffix(".class"));
        names.map(str::to_owned).collect()
    }

    fn last_with(&self, path: &str) -> Option<(&CompiledTree, EntryKind)> {
        let at = |(_, tree): &'_ (PathBuf, CompiledTree)| tree.at(path);
        let found = self.trees.iter().rev().find(|tree| at(tree) != EntryKind::Nothing)?;
        Some((&found.1, at(found)))
    }

    /// Returns the built tree with these files, given by path relative to the tree. A file replaces its content in the
    /// last archive that has it; a new file goes into the first archive.
    ///
    /// # Errors
    /// I/O errors; an error if a path belongs to an entry that is no regular file.
    pub async fn with(&self, built: &Built, files: Files, temporary: &Path) -> std::io::Result<Built> {
        let (this, temporary) = (self.clone(), temporary.to_owned());
        let (archives, own) = blocking(move || this.merged(&files, &temporary)).await?;
        Ok(Built {
            path: built.path,
            archives,
            module: built.module.clone(),
            class_path: built.class_path.clone(),
            build_cpu_ms: built.build_cpu_ms,
            settings: built.settings.clone(),
            family: Arc::clone(&built.family),
            own: built.own.iter().cloned().chain(own).collect(),
        })
    }

    fn merged(&self, files: &Files, temporary: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<Arc<TemporaryFile>>)> {
        let mut of: Vec<BTreeMap<&str, &[u8]>> = vec![BTreeMap::new(); self.trees.len()];
        for (path, content) in files {
            let has = |(_, tree): &(PathBuf, CompiledTree)| tree.file(path).is_some();
            let at = self.trees.iter().rposition(has).unwrap_or_default();
            if let Some(files) = of.get_mut(at) {
                files.insert(path, content);
            }
        }
        let (mut archives, mut own) = (Vec::new(), Vec::new());
        for ((path, tree), files) in self.trees.iter().zip(&of) {
            if files.is_empty() {
                archives.push(path.clone());
                continue;
            }
            let merged = TemporaryFile::named(temporary, "merged", "tar");
            let mut out = fs::File::create(merged.path())?;
            tree.write_with(files, out.file_mut())?;
            archives.push(merged.path().to_owned());
            own.push(Arc::new(merged));
        }
        Ok((archives, own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::direct::write_files;
    use crate::execution::scripted;

    fn read_all(archive: &Path) -> Vec<(String, u64, u32, u64, Vec<u8>)> {
        let mut archive = tar::Archive::new(fs::File::open(archive).unwrap());
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
            let header = entry.header();
            let (mtime, mode, uid) = (header.mtime().unwrap(), header.mode().unwrap(), header.uid().unwrap());
            (String::from_utf8(entry.path_bytes().into_owned()).unwrap(), mtime, mode, uid, content)
        });
        entries.collect()
    }

    #[tokio::test]
    async fn other_files_stand_where_the_files_were() {
        let directory = tempfile::tempdir().unwrap();
        let archive = |name: &str, files: &[(&str, &[u8])]| {
            let path = directory.path().join(name);
            write_files(&path, files.iter().copied()).unwrap();
            path
        };
        let long = format!("target/{}/A.class", "package".repeat(30));
        let tree = archive("tree.tar", &[("pom.xml", b"<p/>"), (&long, b"one"), ("b", &[7; 700]), ("c", b"")]);
        let own = archive("own.tar", &[("b", b"swapped")]);
        let mut built = scripted::built(directory.path());
        built.archives = vec![tree.clone(), own.clone()];
        let open = OpenTree::of(&built).await.unwrap();
        assert_eq!(open.read("b").unwrap().as_deref(), Some(&b"swapped"[..]));
        assert_eq!(open.read("d").unwrap(), None);

        let files: Files = vec![
            (long.clone(), vec![1; 600]),
            ("c".into(), b"grown".to_vec()),
            ("b".into(), b"x".to_vec()),
            ("d/e".into(), vec![2]),
        ];
        let merged = open.with(&built, files, directory.path()).await.unwrap();
        let (before, after) = (read_all(&tree), read_all(&merged.archives[0]));
        let facts = |all: &[(String, u64, u32, u64, Vec<u8>)]| {
            all.iter().map(|(path, mtime, mode, uid, _)| (path.clone(), *mtime, *mode, *uid)).collect::<Vec<_>>()
        };
        assert_eq!(facts(&after)[..4], facts(&before)[..]);
        let contents: Vec<&[u8]> = after.iter().map(|entry| entry.4.as_slice()).collect();
        assert_eq!(contents, [&b"<p/>"[..], &[1; 600], &[7; 700], b"grown", &[2]]);
        assert_eq!(after[4].0, "d/e");
        let swapped = read_all(&merged.archives[1]);
        assert_eq!((swapped.len(), swapped[0].4.as_slice()), (1, &b"x"[..]));
        // What is left as it is is not copied.
        let other = open.with(&built, vec![("b".into(), b"y".to_vec())], directory.path()).await.unwrap();
        assert_eq!(other.archives[0], tree);
        let removed = other.archives[1].clone();
        drop(other);
        assert!(!removed.exists());
    }

    #[tokio::test]
    async fn nothing_takes_a_directorys_place() {
        let directory = tempfile::tempdir().unwrap();
        let mut built = scripted::built(directory.path());
        let tree = directory.path().join("tree.tar");
        write_files(&tree, [("a/b", &b"1"[..])].into_iter()).unwrap();
        built.archives = vec![tree];
        let open = OpenTree::of(&built).await.unwrap();
        assert!(open.with(&built, vec![("a".into(), Vec::new())], directory.path()).await.is_err());
    }
}
