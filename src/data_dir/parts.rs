//! The parts of a data directory: the one table that sweeping, `store gc` and `docs/data-directory.md` read.

/// A part of a data directory.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its directory. `*` stands for any directory, and an empty path for the data directory itself.
    pub path: &'static str,
    /// The content of its files.
    pub holds: &'static str,
    /// The commands that write it.
    pub written_by: &'static str,
    /// The consequence of losing or removing it.
    pub once_lost: &'static str,
    /// How unfinished files of dead writers are removed.
    pub sweep: Sweep,
    /// The kind of record that names blobs here.
    pub names: NamedBlobs,
    /// Whether opening a data directory makes this directory; for a path with `*`, the one above.
    pub made_on_opening: bool,
}

/// How unfinished files of dead writers are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Opening the data directory removes old unfinished files beside the finished ones.
    Files,
    /// Opening the data directory removes whole directories of dead processes.
    Owners,
    /// It has no unfinished files, or the users of the part remove them.
    Itself,
}

/// The kinds of records that name blobs of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBlobs {
    /// No blobs are named here.
    None,
    /// Locks, earlier ones, and unfinished ones.
    Locks,
    /// Built images.
    Images,
    /// Images that were loaded into an engine.
    LoadedImages,
    /// Proofs of images.
    Proofs,
    /// Finished layers.
    Layers,
    /// Descriptions of products in the cache of `artifact::made`.
    Made,
    /// Inputs of runs.
    Runs,
}

const AGAIN: &str = "made again when needed";
const UNUSED: &str = "made again when needed; `store gc` gives up what is unused";
const LOST: &str = "lost";

/// All parts.
pub const PARTS: [Part; 28] = [
    part(
        "",
        "`version`, `origins.toml`; `settings.toml` and `allowed_signers` of the user",
        "any",
        LOST,
        Sweep::Files,
        NamedBlobs::None,
    ),
    opened(part(
        "manifests",
        "repositories' manifests",
        "`import`, `store import`, `bundle import`",
        LOST,
        Sweep::Files,
        NamedBlobs::None,
    )),
    opened(part(
        "tasks",
        "imported tasks",
        "`import`, `bundle import`",
        "made again by `import`",
        Sweep::Files,
        NamedBlobs::None,
    )),
    part(
        "locks",
        "the toolchain's and repositories' locks",
        "`lock`, `store import`, `bundle import`",
        LOST,
        Sweep::Files,
        NamedBlobs::Locks,
    ),
    opened(part(
        "locks/history",
        "replaced locks, by digest",
        "`lock`, `store import`, `bundle import`",
        LOST,
        Sweep::Files,
        NamedBlobs::Locks,
    )),
    part("locks/.held", "files that processes lock", "any", "made again", Sweep::Itself, NamedBlobs::None),
    part("focal", "focal methods of tasks", "`tasks focal`, `score`", AGAIN, Sweep::Files, NamedBlobs::None),
    part(
        "time-classes",
        "how much time tasks' submissions may take",
        "`validate`, `score`, `bundle import`",
        "measured anew, perhaps with another result",
        Sweep::Files,
        NamedBlobs::None,
    ),
    opened(part("images", "built images", "`build-images`, `bundle import`", AGAIN, Sweep::Files, NamedBlobs::Images)),
    part(
        "images/loaded",
        "images in engines",
        "`lock`, `build-images`, `validate`, `score`, `workspace`, `images load`, `export harbor`",
        AGAIN,
        Sweep::Files,
        NamedBlobs::LoadedImages,
    ),
    opened(part("proofs", "what was shown of images", "`build-images`", AGAIN, Sweep::Files, NamedBlobs::Proofs)),
    part("results", "results by execution key", "`score`, `bundle import`", AGAIN, Sweep::Files, NamedBlobs::None),
    opened(part(
        "runs/*",
        "inputs, records and logs of a run",
        "`validate`, `score`, `bundle import`",
        LOST,
        Sweep::Files,
        NamedBlobs::Runs,
    )),
    part(
        "sharded/*",
        "what was submitted to a cluster, and its logs",
        "`validate`, `score`",
        "its shards are submitted again",
        Sweep::Files,
        NamedBlobs::None,
    ),
    part("runs/*/mutants", "mutants until the run ends", "`score`", AGAIN, Sweep::Files, NamedBlobs::None),
    opened(part(
        "repositories",
        "clones, where no mirror is given; sources of bundles",
        "any",
        AGAIN,
        Sweep::Itself,
        NamedBlobs::None,
    )),
    part("store/blobs", "bytes by digest; unfinished ones lie in `tmp`", "any", AGAIN, Sweep::Itself, NamedBlobs::None),
    part(
        "store/layers",
        "finished layers, by recipe",
        "`lock`, `build-images`, `validate`, `score`, `bundle import`",
        AGAIN,
        Sweep::Files,
        NamedBlobs::Layers,
    ),
    part(
        "store/prepared",
        "prepared revisions",
        "`validate`, `score`, `bundle import`",
        UNUSED,
        Sweep::Files,
        NamedBlobs::Made,
    ),
    part(
        "store/class-archives",
        "class archives",
        "`validate`, `score`, `bundle import`",
        UNUSED,
        Sweep::Files,
        NamedBlobs::Made,
    ),
    part("store/released", "which releases' files `central` served", "`lock`", UNUSED, Sweep::Files, NamedBlobs::Made),
    part(
        "store/jars",
        "our own jars",
        "`lock`, `build-images`, `validate`, `score`, `bundle import`",
        AGAIN,
        Sweep::Files,
        NamedBlobs::Made,
    ),
    part("store/unpacked", "unpacked layers, by diff id", "any", AGAIN, Sweep::Itself, NamedBlobs::None),
    part("store/unpacked/manifests", "what unpacked layers consist of", "any", AGAIN, Sweep::Files, NamedBlobs::None),
    part("store/unpacked/images", "images in the built-in engine", "any", AGAIN, Sweep::Files, NamedBlobs::None),
    opened(part("tmp", "a directory for each living process", "any", "made again", Sweep::Owners, NamedBlobs::None)),
    part(
        "demo",
        "a data directory that shares `store`",
        "`demo`",
        "made again by `demo`",
        Sweep::Itself,
        NamedBlobs::None,
    ),
    part(
        "selftest",
        "a data directory that shares `store`",
        "`selftest`",
        "made again by `selftest`",
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
    Part { path, holds, written_by, once_lost, sweep, names, made_on_opening: false }
}

/// Returns a part that opening a data directory makes.
const fn opened(part: Part) -> Part {
    Part { made_on_opening: true, ..part }
}
