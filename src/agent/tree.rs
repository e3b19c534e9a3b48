//! The starting tree as files, and as the one commit of a new git repository.
//!
//! Only the tree's files decide the bytes of the repository: author, dates and message are fixed, and there is no parent, remote,
//! reflog or pack. Git's own templates and configuration are not used.

use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fs_err as fs;
use git2::{IndexEntry, IndexTime, ObjectType, Oid, Signature, Time};

use super::AgentError;
use crate::workspace::{RevisionTree, Swap, TREE_TIME, write_archive};

const NAME: &str = "testevo-sandbox";
const MESSAGE: &str = "Starting tree\n";
const BRANCH: &str = "refs/heads/main";
pub(super) const HEAD: &str = "ref: refs/heads/main\n";
pub(super) const CONFIGURATION: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
/// The working files are the bytes of the commit, whatever the project's own attributes ask for.
pub(super) const ATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding\n";

/// A written project.
pub(super) struct Project {
    pub(super) files: usize,
    pub(super) bytes: u64,
    pub(super) commit: String,
    pub(super) lacking: Vec<String>,
}

/// Writes a tree with one file swapped to a new directory, with its git repository. `archive` is overwritten.
pub(super) fn write(
    tree: &RevisionTree,
    swap: Swap<'_>,
    archive: &Path,
    project: &Path,
) -> Result<Project, AgentError> {
    let mut out = std::io::BufWriter::new(fs::File::create(archive)?);
    let report = write_archive(tree, Some(swap), TREE_TIME, &mut out)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    report.require(tree, |path| path.ends_with(".java") || path.ends_with("pom.xml"))?;
    fs::create_dir(project)?;
    let git = project.join(".git");
    for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
        fs::create_dir_all(git.join(directory))?;
    }
    fs::write(git.join("HEAD"), HEAD)?;
    fs::write(git.join("config"), CONFIGURATION)?;
    fs::write(git.join("info/attributes"), ATTRIBUTES)?;
    let repository = git2::Repository::open_ext(project, git2::RepositoryOpenFlags::NO_SEARCH, [] as [&Path; 0])?;
    let (odb, mut index) = (repository.odb()?, repository.index()?);
    let mut archive = tar::Archive::new(std::io::BufReader::new(fs::File::open(archive)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let path = entry.path_bytes().into_owned();
        let file = project.join(std::ffi::OsStr::from_bytes(&path));
        // The archive names each directory before its files, and no file lies below a link.
        let (mode, content) = match kind {
            tar::EntryType::Directory => {
                fs::create_dir(&file)?;
                continue;
            }
            tar::EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                fs_err::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(&target), &file)?;
                (0o120_000, target)
            }
            _ => {
                let executable = entry.header().mode()? & 0o100 != 0;
                let mut content = Vec::new();
                entry.read_to_end(&mut content)?;
                fs::write(&file, &content)?;
                if executable {
                    use std::os::unix::fs::PermissionsExt as _;
                    fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
                }
                (if executable { 0o100_755 } else { 0o100_644 }, content)
            }
        };
        let id = odb.write(ObjectType::Blob, &content)?;
        index.add(&index_entry(path, mode, id))?;
    }
    let root = repository.find_tree(index.write_tree()?)?;
    index.write()?;
    let author = Signature::new(NAME, "task@localhost", &Time::new(TREE_TIME.cast_signed(), 0))?;
    // A commit that updates a branch would write a reflog with the date of today.
    let commit = repository.commit(None, &author, &author, MESSAGE, &root, &[])?.to_string();
    fs::write(git.join(BRANCH), format!("{commit}\n"))?;
    let lacking = report.unusual.submodules.into_iter().chain(report.unusual.missing_blobs).collect();
    Ok(Project { files: report.files, bytes: report.bytes, commit, lacking })
}

/// Returns an entry without facts of the file system, so that git compares contents when it first looks.
pub(super) fn index_entry(path: Vec<u8>, mode: u32, id: Oid) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path,
    }
}
