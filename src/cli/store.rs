//! `store`: what the local store holds, whether it is sound, and how its bytes are kept beyond their origins.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use fs_err as fs;
use serde_json::json;

use super::interrupts::block_on;
use super::stdout;
use crate::application::Context;
use crate::application::workbench::Workbench;
use crate::artifact::made::{PrunePolicy, prune};
use crate::error::CommandError;
use crate::execution::build::prepared::Prepared;
use crate::execution::launch::sharing::ClassArchive;
use crate::garbage::{Garbage, Verified, collect, verify};
use crate::lock::archive::{LockArchive, LockArchiveError};
use crate::lock::{LockFile, LockFileError, MismatchError, ToolchainLock};
use crate::manifest::RepositoryManifest;
use crate::output::{OutputFormat, counted};
use crate::task::RepositoryName;
use crate::task::selector::repository_fits;

/// Arguments of `store`.
#[derive(Debug, Args)]
pub(super) struct StoreArguments {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Compare every blob's bytes with its name
    Verify {
        /// Remove what is corrupted; the next command that needs it fetches or makes it again
        #[arg(long)]
        repair: bool,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Remove blobs that no lock, image or run names any more; with --dry-run only say which
    Gc {
        /// Keep what is younger: a command that runs may be about to name it
        #[arg(long, value_name = "HOURS", default_value_t = 24)]
        min_age: u64,
        /// Give up prepared revisions and class archives unused for so long
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
        prepared_days: u64,
        /// Give up the least used revisions beyond this size
        #[arg(long, value_name = "GIB", default_value_t = 20)]
        prepared_gib: u64,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Write locks, manifests and every byte that they name into one archive
    Export {
        /// Repositories (owner/name or name), with * and ?; all locked ones where none is given
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Archive to write; - is stdout
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Take locks, manifests and bytes from an archive of `store export`
    Import {
        /// Archive to read; - is stdin
        #[arg(value_name = "FILE")]
        archive: PathBuf,
        /// Replace locks that differ; they are kept in locks/history
        #[arg(long)]
        replace: bool,
    },
}

pub(super) fn run(arguments: &StoreArguments, context: &Context) -> Result<(), CommandError> {
    let workbench = Workbench::open(context)?;
    match &arguments.command {
        StoreCommand::Verify { repair, format } => verify_all(&workbench, *repair && !context.options.dry_run, *format),
        StoreCommand::Gc { min_age, prepared_days, prepared_gib, format } => {
            let keeping = PrunePolicy {
                always: Duration::from_secs(min_age.saturating_mul(3600)),
                age: Duration::from_secs(prepared_days.saturating_mul(86_400)),
                most_bytes: prepared_gib.saturating_mul(1 << 30),
            };
            collect_garbage(&workbench, &keeping, *format)
        }
        StoreCommand::Export { names, output } => export(&workbench, names, output),
        StoreCommand::Import { archive, replace } => import(&workbench, archive, *replace),
    }
}

fn verify_all(workbench: &Workbench<'_>, repair: bool, format: OutputFormat) -> Result<(), CommandError> {
    let (context, store) = (workbench.context, &workbench.store);
    let verified: Verified = verify(store, |_| ())?;
    if repair {
        for digest in &verified.corrupted {
            store.remove(digest)?;
        }
    }
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "schema": 1, "sound": verified.sound, "bytes": verified.bytes, "corrupted": verified.corrupted,
            "repaired": repair,
        }))?,
        OutputFormat::Text => {
            for digest in &verified.corrupted {
                stdout::line(&format!("corrupted: {digest}"))?;
            }
            let blobs = counted(verified.sound, "blob", "blobs");
            stdout::line(&format!("{blobs} sound, {} MiB read", verified.bytes >> 20))?;
        }
    }
    match verified.corrupted.len() {
        0 => Ok(()),
        removed if repair => {
            context.events.message(format!("removed {}", counted(removed, "corrupted blob", "corrupted blobs")));
            Ok(())
        }
        found => Err(CommandError::StoreCorrupted { blobs: found }),
    }
}

fn collect_garbage(workbench: &Workbench<'_>, keeping: &PrunePolicy, format: OutputFormat) -> Result<(), CommandError> {
    let dry_run = workbench.context.options.dry_run;
    // First, so that what they name is garbage.
    let prepared = prune::<Prepared>(&workbench.store, keeping, dry_run).map_err(CommandError::Runtime)?;
    // They are few and small beside revisions.
    let archives = PrunePolicy { most_bytes: u64::MAX, ..*keeping };
    let archives = prune::<ClassArchive>(&workbench.store, &archives, dry_run).map_err(CommandError::Runtime)?;
    let garbage: Garbage = collect(&workbench.store, keeping.always, dry_run)?;
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "schema": 1, "removed": garbage.blobs, "bytes": garbage.bytes, "young": garbage.young,
            "used": garbage.used, "prepared": prepared, "class_archives": archives, "dry_run": dry_run,
        })),
        OutputFormat::Text => {
            let verb = if dry_run { "would be removed" } else { "removed" };
            let blobs = counted(garbage.blobs.len(), "blob", "blobs");
            stdout::line(&format!(
                "{blobs} {verb}, {} MiB; {} in use, {} too young to tell",
                garbage.bytes >> 20,
                garbage.used,
                garbage.young
            ))?;
            let given_up =
                [(prepared, "prepared revision", "prepared revisions"), (archives, "class archive", "class archives")];
            for (count, one, many) in given_up.into_iter().filter(|(count, ..)| *count > 0) {
                stdout::line(&format!("{} {verb}", counted(count, one, many)))?;
            }
            Ok(())
        }
    }
}

fn export(workbench: &Workbench<'_>, names: &[String], output: &Path) -> Result<(), CommandError> {
    let context = workbench.context;
    let toolchain = workbench.toolchain()?;
    let mut repositories = BTreeMap::new();
    for repository in locked(workbench, names)? {
        // What can't be used here is of no use elsewhere.
        workbench.manifest(&repository)?;
        let path = workbench.lock_path(&repository);
        let lock = workbench.repository_lock(&repository)?.ok_or(LockFileError::Missing { path })?;
        let text =
            fs::read_to_string(workbench.manifest_path(&repository)).map_err(crate::manifest::ManifestError::Io)?;
        repositories.insert(repository, (lock, text));
    }
    let archive = LockArchive { toolchain, repositories };
    let (blobs, count) = (archive.blobs(), archive.repositories.len());
    let missing: BTreeSet<_> = blobs.keys().copied().filter(|digest| !workbench.store.contains(digest)).collect();
    for (lock, _) in archive.repositories.values() {
        block_on(context, workbench.fetch(&missing, &archive.toolchain, lock))?;
    }
    let bytes: u64 = blobs.values().sum();
    let what = format!(
        "{} of {}, {} MiB",
        counted(blobs.len(), "blob", "blobs"),
        counted(count, "repository", "repositories"),
        bytes >> 20
    );
    if context.options.dry_run {
        context.events.message(format!("would write {what}"));
        return Ok(());
    }
    if output == Path::new("-") {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            return Err(CommandError::Usage {
                message: "an archive is nothing for a terminal".to_owned(),
                hint: "redirect stdout or name a file with `--output`".to_owned(),
            });
        }
        archive.write(&workbench.store, "-", &mut stdout.lock())?;
    } else {
        write_file(&archive, workbench, output)?;
    }
    context.events.message(format!("wrote {what}"));
    Ok(())
}

/// Writes beside the file first, so that nobody takes half an archive for a whole one.
fn write_file(archive: &LockArchive, workbench: &Workbench<'_>, output: &Path) -> Result<(), CommandError> {
    let name = output.display().to_string();
    let Some(file_name) = output.file_name() else {
        return Err(CommandError::Usage {
            message: format!("`{name}` is no file name"),
            hint: "name a file with `--output`".to_owned(),
        });
    };
    let unfinished = output.with_file_name(format!(".{}.unfinished", file_name.to_string_lossy()));
    let io = |source| LockArchiveError::Io { name: name.clone(), doing: "written", source };
    let create = |path: &Path| workbench.context.umask.create_file(path);
    let write = || -> Result<(), LockArchiveError> {
        let mut out = io::BufWriter::with_capacity(1 << 20, create(&unfinished).map_err(io)?);
        archive.write(&workbench.store, &name, &mut out)?;
        out.flush().map_err(io)?;
        fs::rename(&unfinished, output).map_err(io)
    };
    write().inspect_err(|_| {
        // The write's error is the one to tell.
        let _ = fs::remove_file(&unfinished);
    })?;
    Ok(())
}

/// Returns the locked repositories that the names choose; each name must choose one.
fn locked(workbench: &Workbench<'_>, names: &[String]) -> Result<Vec<RepositoryName>, CommandError> {
    let all = workbench.locked()?;
    for name in names {
        if !all.iter().any(|repository| repository_fits(name, repository)) {
            return Err(CommandError::Usage {
                message: format!("no repository `{name}` has a lock"),
                hint: "run `testevo-sandbox lock` for it first".to_owned(),
            });
        }
    }
    if all.is_empty() {
        return Err(CommandError::Usage {
            message: "no repository has a lock".to_owned(),
            hint: "run `testevo-sandbox lock` first".to_owned(),
        });
    }
    let chosen = |repository: &RepositoryName| names.iter().any(|name| repository_fits(name, repository));
    Ok(all.into_iter().filter(|repository| names.is_empty() || chosen(repository)).collect())
}

fn import(workbench: &Workbench<'_>, path: &Path, replace: bool) -> Result<(), CommandError> {
    let context = workbench.context;
    let name = path.display().to_string();
    if context.options.dry_run {
        // What an archive holds is known once its bytes were taken and looked at.
        let store = workbench.store.root().display();
        context.events.message(format!("would read `{name}` and take locks, manifests and bytes into `{store}`"));
        return Ok(());
    }
    let archive = if path == Path::new("-") {
        LockArchive::read(&mut io::stdin().lock(), &name, &workbench.store)?
    } else {
        let file = fs::File::open(path).map_err(|source| LockArchiveError::Io {
            name: name.clone(),
            doing: "read",
            source,
        })?;
        LockArchive::read(&mut io::BufReader::with_capacity(1 << 20, file), &name, &workbench.store)?
    };
    // Everything is looked at before anything is changed.
    for (repository, (_, text)) in &archive.repositories {
        let path = format!("{name}: manifests/{}.toml", repository.file_stem());
        let manifest = RepositoryManifest::parse(Path::new(&path), text)?;
        if manifest.repository != *repository {
            return Err(LockArchiveError::Malformed {
                name,
                reason: format!("`{path}` is the manifest of {}", manifest.repository),
            }
            .into());
        }
        // Where there is one already it stays, and the archive's decides nothing.
        if !workbench.manifest_path(repository).exists() {
            tell_of(&manifest, &RepositoryManifest::overridden_keys(Path::new(&path), text)?, context);
        }
    }
    let mut held = vec![block_on(context, workbench.hold("lock-toolchain"))?];
    for repository in archive.repositories.keys() {
        held.push(block_on(context, workbench.hold(&format!("lock-{}", repository.file_stem())))?);
    }
    let toolchain_path = workbench.toolchain_path();
    let toolchain = present::<ToolchainLock>(&toolchain_path)?;
    refuse_other(toolchain.as_ref(), &archive.toolchain, &toolchain_path, replace)?;
    for (repository, (lock, _)) in &archive.repositories {
        refuse_other(workbench.repository_lock(repository)?.as_ref(), lock, &workbench.lock_path(repository), replace)?;
    }
    put(workbench, toolchain, &archive.toolchain, &toolchain_path)?;
    for (repository, (lock, manifest)) in &archive.repositories {
        let path = workbench.manifest_path(repository);
        // A manifest that is there may have its user's overrides.
        if !path.exists() {
            let write = || {
                fs::create_dir_all(workbench.data_dir.join("manifests"))?;
                crate::data_dir::write_atomically(&path, manifest.as_bytes())
            };
            write().map_err(crate::manifest::ManifestError::Io)?;
        }
        put(workbench, workbench.repository_lock(repository)?, lock, &workbench.lock_path(repository))?;
    }
    let repositories = counted(archive.repositories.len(), "repository", "repositories");
    context.events.message(format!("took {} of {repositories}", counted(archive.blobs().len(), "blob", "blobs")));
    Ok(())
}

/// Tells what a stranger's manifest has that published data alone would not have made of it.
fn tell_of(manifest: &RepositoryManifest, overridden: &[String], context: &Context) {
    let (name, url) = (&manifest.repository, &manifest.clone_url);
    if url.scheme() != "https" {
        context.events.warning(format!("the archive has {name} cloned from {url}"));
    }
    if !overridden.is_empty() {
        let keys = overridden.join("`, `");
        context.events.warning(format!("the archive's manifest of {name} overrides `{keys}`"));
    }
}

fn present<L: LockFile>(path: &Path) -> Result<Option<L>, CommandError> {
    match L::load(path) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockFileError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn refuse_other<L: LockFile + PartialEq>(
    present: Option<&L>,
    taken: &L,
    path: &Path,
    replace: bool,
) -> Result<(), CommandError> {
    if replace || present.is_none_or(|present| present == taken) {
        return Ok(());
    }
    Err(MismatchError::OtherLock { path: path.to_owned() }.into())
}

fn put<L: LockFile + PartialEq>(
    workbench: &Workbench<'_>,
    present: Option<L>,
    taken: &L,
    path: &Path,
) -> Result<(), CommandError> {
    match present {
        Some(present) if present == *taken => return Ok(()),
        Some(present) => workbench.keep_history(&present)?,
        None => {}
    }
    Ok(taken.store(path)?)
}
