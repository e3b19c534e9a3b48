//! Recognises Maven's own notes in a cache: where artifacts came from, and what was not found.
//!
//! They describe one machine on one day, so no origin is asked for them. A mirror that copies another machine's cache
//! contains some.

/// Tells whether a file of this path is Maven's own note rather than an artifact.
pub(super) fn is_bookkeeping(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let noted = [
        "_remote.repositories",
        // Of Maven before 3.1.
        "_maven.repositories",
        "resolver-status.properties",
        "m2e-lastUpdated.properties",
    ];
    noted.contains(&name)
        || name.ends_with(".lastUpdated")
        // Origins have this file without a repository's name. Its cached form is frozen as text.
        || (name.starts_with("maven-metadata-") && name.ends_with(".xml"))
}
