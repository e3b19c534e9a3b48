//! Installs the sample repository for a user.
//!
//! `demo` and `selftest` have data directories of their own below the user's, so that samples never mix with real tasks. They
//! share the user's store, so that nothing is downloaded twice.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::io_failure::IoFailure;
use super::{Context, Options};
use crate::error::CommandError;
use crate::sample::SampleRepository;

/// Writes samples to `directory` below the user's data directory. Returns their published data, and a context of their data
/// directory.
///
/// # Errors
/// [`CommandError`] of the data directory and of files.
pub fn prepare(
    samples: &[SampleRepository],
    directory: &str,
    context: &Context,
) -> Result<(Vec<PathBuf>, Context), CommandError> {
    let root = prepare_directory(directory, context)?;
    let data = samples.iter().map(|sample| write_sample(sample, &root)).collect::<Result<_, _>>()?;
    let own = context.with_options(Options {
        git_mirror: Some(format!("{}/{{owner}}__{{name}}", root.join("sources").display())),
        data_dir: root,
        ..context.options.clone()
    });
    Ok((data, own))
}

/// Creates a sample's own data directory with a link to the user's store.
fn prepare_directory(directory: &str, context: &Context) -> Result<PathBuf, CommandError> {
    let data_dir = context.data_dir()?;
    let root = data_dir.join(directory);
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(&root)?;
        fs::create_dir_all(data_dir.join("store"))?;
        match std::os::unix::fs::symlink("../store", root.join("store")) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    make().map_err(IoFailure::of(format!("making the directory `{}`", root.display())))?;
    Ok(root)
}

/// Writes the sample's git repository and published data, and returns the path of the data.
fn write_sample(sample: &SampleRepository, root: &Path) -> Result<PathBuf, CommandError> {
    let sources = root.join("sources").join(sample.name.file_stem());
    let clear = || match fs::remove_dir_all(&sources) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    clear().map_err(IoFailure::of("removing an earlier sample"))?;
    let revisions = sample.write_git(&sources)?;
    let data = root.join(format!("{}.json", sample.name.file_stem()));
    fs::write(&data, sample.published(&revisions)).map_err(IoFailure::of("writing the sample's data"))?;
    Ok(data)
}
