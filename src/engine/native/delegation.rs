//! Control groups of version 2: finds the group below which containers' groups can be created.
//!
//! A group delegates controllers only if `cgroup.subtree_control` lists them and, except for the root group, only while
//! it holds no process. Service managers list them for their slices. In a group that is delegated to a user as a whole,
//! or without a service manager, its user must list them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::machine::Tree;

/// Controllers that hold a container's limits.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

/// Returns the group for new groups, with the controllers that it delegates. `own` is this process's group. `leaf` is a
/// group in `own`; this process moves there if it is the only process in `own`.
pub(super) fn parent(tree: &dyn Tree, own: &Path, leaf: &Path) -> Option<(PathBuf, Vec<&'static str>)> {
    // Engines of one process would interfere with each other.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let ancestors = || own.ancestors().take_while(|group| tree.read(&group.join("cgroup.controllers")).is_some());
    let handing = || ancestors().find(|group| tree.is_ours(group) && hands_on(tree, group, "memory"));
    let parent = handing().or_else(|| {
        // No controller is delegated yet, perhaps only because nobody requested it.
        let own = ancestors().next().filter(|own| tree.is_ours(own))?;
        let asked = hand_on(tree, own, "memory") || handing().is_some();
        if !asked && offers(tree, own, "memory") && step_aside(tree, own, leaf) {
            hand_on(tree, own, "memory");
        }
        handing()
    })?;
    let controllers: Vec<&str> =
        CONTROLLERS.into_iter().filter(|name| hands_on(tree, parent, name) || hand_on(tree, parent, name)).collect();
    Some((parent.to_owned(), controllers))
}

/// Returns the words in a file of a group.
fn has(tree: &dyn Tree, group: &Path, file: &str) -> Vec<String> {
    tree.read(&group.join(file)).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Tells whether a group could delegate a controller.
fn offers(tree: &dyn Tree, group: &Path, controller: &str) -> bool {
    has(tree, group, "cgroup.controllers").iter().any(|name| name == controller)
}

/// Tells whether a group delegates a controller.
fn hands_on(tree: &dyn Tree, group: &Path, controller: &str) -> bool {
    has(tree, group, "cgroup.subtree_control").iter().any(|name| name == controller)
}

/// Makes a group delegate a controller, and the groups above it if necessary. Tells whether the group does so now.
fn hand_on(tree: &dyn Tree, group: &Path, controller: &str) -> bool {
    if !tree.is_ours(group) {
        return false;
    }
    let offered = offers(tree, group, controller)
        || group.parent().is_some_and(|above| hand_on(tree, above, controller) && offers(tree, group, controller));
    offered
        && tree.write(&group.join("cgroup.subtree_control"), &format!("+{controller}")).is_ok()
        && hands_on(tree, group, controller)
}

/// Moves this process into a group of its own if it is the only process in `own`; other processes are never moved.
fn step_aside(tree: &dyn Tree, own: &Path, leaf: &Path) -> bool {
    let process = std::process::id().to_string();
    has(tree, own, "cgroup.procs") == [process.clone()]
        && tree.make(leaf).is_ok()
        && tree.write(&leaf.join("cgroup.procs"), &process).is_ok()
}

#[cfg(test)]
mod tests;
