//! The parts of a data directory: the one table that sweeping, `store gc` and `docs/data-directory.md` read.

/// A part of a data directory.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its directory; `*` is any directory, and an empty path the data directory itself.
    pub path: &'static str,
    /// What its files are.
    pub holds: &'static str,
    /// The commands that write it.
    pub written_by: &'static str,
    /// What becomes of it where it is lost or given up.
    pub once_lost: &'static str,
    /// How unfinished files of dead writers go.
    pub sweep: Sweep,
    /// Which kind of record names blobs here.
    pub names: NamedBlobs,
}

/// How unfinished files of dead writers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Opening the data directory removes them: they lie beside the finished ones and are old.
    Files,
    /// Opening the data directory removes whole directories of dead processes.
    Owners,
    /// Nothing unfinished lies here, or whoever uses the part removes it.
    Itself,
}

/// The kinds of records that name blobs of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBlobs {
    /// Files here name none.
    None,
    /// Locks, earlier ones, and those that still grow.
    Locks,
    /// Built images.
    Images,
    /// Images that were loaded into an engine.
    LoadedImages,
    /// Proofs of images.
    Proofs,
    /// Finished layers.
    Layers,
    /// Descriptions of what is made once.
    Made,
    /// Inputs of runs.
    Runs,
}

const AGAIN: &str = "made again when needed";
const UNUSED: &str = "made again when needed; `store gc` gives up what is unused";
const LOST: &str = "lost";

/// All parts.
pub const PARTS: [Part; 23] = [
    part("", "`version`, `origins.toml`; `settings.toml` of the user", "any", LOST, Sweep::Files, NamedBlobs::None),
    part("manifests", "repositories' manifests", "`import`, `store import`", LOST, Sweep::Files, NamedBlobs::None),
    part("tasks", "imported tasks", "`import`", "made again by `import`", Sweep::Files, NamedBlobs::None),
    part(
        "locks",
        "the toolchain's and repositories' locks",
        "`lock`, `store import`",
        LOST,
        Sweep::Files,
        NamedBlobs::Locks,
    ),
    part("locks/history", "replaced locks, by digest", "`lock`, `store import`", LOST, Sweep::Files, NamedBlobs::Locks),
    part("locks/.held", "files that processes lock", "any", "made again", Sweep::Itself, NamedBlobs::None),
    part("focal", "focal methods of tasks", "`tasks focal`, `score`", AGAIN, Sweep::Files, NamedBlobs::None),
    part("images", "built images", "`build-images`", AGAIN, Sweep::Files, NamedBlobs::Images),
    part(
        "images/loaded",
        "images in engines",
        "`lock`, `build-images`, `validate`, `score`",
        AGAIN,
        Sweep::Files,
        NamedBlobs::LoadedImages,
    ),
    part("proofs", "what was shown of images", "`build-images`", AGAIN, Sweep::Files, NamedBlobs::Proofs),
    part("results", "results by execution key", "`score`", AGAIN, Sweep::Files, NamedBlobs::None),
    part("runs/*", "inputs, records and logs of a run", "`validate`, `score`", LOST, Sweep::Files, NamedBlobs::Runs),
    part("runs/*/mutants", "mutants until the run ends", "`score`", AGAIN, Sweep::Files, NamedBlobs::None),
    part("repositories", "clones, where no mirror is given", "any", AGAIN, Sweep::Itself, NamedBlobs::None),
    part("store/blobs", "bytes by digest; unfinished ones lie in `tmp`", "any", AGAIN, Sweep::Itself, NamedBlobs::None),
    part(
        "store/layers",
        "finished layers, by recipe",
        "`lock`, `build-images`, `validate`, `score`",
        AGAIN,
        Sweep::Files,
        NamedBlobs::Layers,
    ),
    part("store/prepared", "prepared revisions", "`validate`, `score`", UNUSED, Sweep::Files, NamedBlobs::Made),
    part("store/class-archives", "class archives", "`validate`, `score`", UNUSED, Sweep::Files, NamedBlobs::Made),
    part(
        "store/jars",
        "our own jars",
        "`lock`, `build-images`, `validate`, `score`",
        AGAIN,
        Sweep::Files,
        NamedBlobs::Made,
    ),
    part("store/unpacked", "unpacked layers, by diff id", "any", AGAIN, Sweep::Itself, NamedBlobs::None),
    part("store/unpacked/images", "images in the built-in engine", "any", AGAIN, Sweep::Files, NamedBlobs::None),
    part("tmp", "a directory for each living process", "any", "made again", Sweep::Owners, NamedBlobs::None),
    part(
        "demo",
        "a data directory that shares `store`",
        "`demo`",
        "made again by `demo`",
        Sweep::Itself,
        NamedBlobs::None,
    ),
];

const fn part(
    path: &'static str,
    holds: &'static str,
    written_by: &'static str,
    once_lost: &'static str,
    sweep: Sweep,
    names: NamedBlobs,
) -> Part {
    Part { path, holds, written_by, once_lost, sweep, names }
}
