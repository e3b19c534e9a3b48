//! The files in which Maven notes, beside the artifacts of a cache, where those came from and what was not found.
//!
//! They tell of one machine and one day. No origin is asked for them: a mirror that is another machine's cache has some.

/// Tells whether a file of this path is Maven's own note, and no artifact.
pub(super) fn is_bookkeeping(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let noted = [
        "_remote.repositories",
        // Maven's before 3.1.
        "_maven.repositories",
        "resolver-status.properties",
        "m2e-lastUpdated.properties",
    ];
    noted.contains(&name)
        || name.ends_with(".lastUpdated")
        // Origins have it without a repository's name; what is cached of that is frozen as text.
        || (name.starts_with("maven-metadata-") && name.ends_with(".xml"))
}
