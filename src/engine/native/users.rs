//! Maps a container's users to users outside.
//!
//! Without root's rights, the task's user is this process's own. With root's rights, it is a user that no other
//! container and nobody else has. All other users map to themselves, so that files of any owner can be mounted while
//! the container is created. Then the container's first process leaves them behind. It moves to a namespace of its own
//! with only the task's user, and everything in the container runs there.

use std::io;

use fs_err as fs;

use super::super::spec::TASK_USER;

/// Offset of the users of root's containers. The runtime's process number is added.
const FIRST_USER: u32 = 0x7E57_0000;

/// Consecutive users: first inside, first outside, number.
type Extent = (u32, u32, u32);

/// The users of a new user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// Only the task's user.
    Task,
    /// The task's user and others of the machine, including root.
    Many,
}

/// Gives a process in a new user namespace its users and groups.
pub(super) fn map(process: libc::pid_t) -> io::Result<Users> {
    let mut users = Users::Task;
    let path = |file: &str| format!("/proc/{process}/{file}");
    let own = std::process::id();
    for (kind, id) in [("uid", rustix::process::geteuid().as_raw()), ("gid", rustix::process::getegid().as_raw())] {
        let known = extents(&fs::read_to_string(format!("/proc/self/{kind}_map"))?);
        if let Some(all) = privileged(id, &known, FIRST_USER.saturating_add(own)) {
            match write(&path(&format!("{kind}_map")), &lines(&all)) {
                Ok(()) => {
                    users = Users::Many;
                    continue;
                }
                // Root without the right to become another user, as in some containers.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
                Err(error) => return Err(error),
            }
        }
        if kind == "gid" {
            // A process that may not map arbitrary groups must give up dropping groups.
            write(&path("setgroups"), "deny")?;
        }
        write(&path(&format!("{kind}_map")), &lines(&[(TASK_USER, id, 1)]))?;
    }
    Ok(users)
}

/// Moves this process into a user namespace with only the task's user and group. The process must be that user already,
/// and own its files in `/proc`.
pub(super) fn leave_all_others() -> io::Result<()> {
    // SAFETY: this process has one thread, and no memory is involved.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let alone = lines(&[(TASK_USER, TASK_USER, 1)]);
    // A process that may not map arbitrary groups must give up dropping groups.
    for (file, content) in [("setgroups", "deny"), ("uid_map", &alone), ("gid_map", &alone)] {
        write(&format!("/proc/self/{file}"), content)?;
    }
    Ok(())
}

/// Writes a kernel file. Not fs_err, because the error's number is needed, and the step names the file.
fn write(path: &str, content: &str) -> io::Result<()> {
    use std::io::Write as _;
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(content.as_bytes())
}

/// Reads the map of this process's own namespace: the users that exist here.
fn extents(text: &str) -> Vec<(u32, u32)> {
    text.lines()
        .filter_map(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u32>);
            let (first, _, count) = (numbers.next()?.ok()?, numbers.next()?, numbers.next()?.ok()?);
            Some((first, count))
        })
        .collect()
}

/// Returns a map in which the task's user and `stand_in` change places, and all others stay. If `stand_in` does not
/// exist, the last existing user takes its place. `None` if this process is not root, or knows neither of the two.
fn privileged(own: u32, known: &[(u32, u32)], stand_in: u32) -> Option<Vec<Extent>> {
    let exists = |user: u32| known.iter().any(|(first, count)| user >= *first && user - first < *count);
    if own != 0 || !exists(TASK_USER) {
        return None;
    }
    let stand_in = if exists(stand_in) {
        stand_in
    } else {
        known.iter().map(|(first, count)| first.saturating_add(count - 1)).max().filter(|last| *last > TASK_USER)?
    };
    let mut all = vec![(TASK_USER, stand_in, 1), (stand_in, TASK_USER, 1)];
    for (first, count) in known {
        let extent_of = u64::from(*first)..u64::from(*first) + u64::from(*count);
        let mut from = extent_of.start;
        // The extent may contain one of the two users, both, or none.
        for cut in [u64::from(TASK_USER), u64::from(stand_in)].into_iter().filter(|cut| extent_of.contains(cut)) {
            all.extend(extent(from, cut));
            from = cut + 1;
        }
        all.extend(extent(from, extent_of.end));
    }
    Some(all)
}

/// Returns the extent of users that map to themselves; `None` for an empty one.
fn extent(from: u64, end: u64) -> Option<Extent> {
    // Users have 32 bits, and so have all numbers that are read here.
    (from < end).then(|| (from as u32, from as u32, (end - from) as u32))
}

fn lines(extents: &[Extent]) -> String {
    extents.iter().map(|(inside, outside, count)| format!("{inside} {outside} {count}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_hands_the_task_to_a_user_that_nobody_is() {
        let all = privileged(0, &extents("         0          0 4294967295\n"), 2_000_000_000).unwrap();
        assert_eq!(
            all,
            [
                (1000, 2_000_000_000, 1),
                (2_000_000_000, 1000, 1),
                (0, 0, 1000),
                (1001, 1001, 1_999_998_999),
                (2_000_000_001, 2_000_000_001, 2_294_967_294)
            ]
        );
        let few = privileged(0, &extents("0 100000 65536\n"), 2_000_000_000).unwrap();
        assert_eq!(few, [(1000, 65535, 1), (65535, 1000, 1), (0, 0, 1000), (1001, 1001, 64534)]);
        // Root's namespace as other rootless engines make it: the user that it is, and those that were granted.
        let split = privileged(0, &extents("0 1000 1\n1 100000 65536\n"), 2_000_000_000).unwrap();
        assert_eq!(split, [(1000, 65536, 1), (65536, 1000, 1), (0, 0, 1), (1, 1, 999), (1001, 1001, 64535)]);
    }

    /// Whatever users there are, each is in the map once, inside and outside, and nobody else is.
    #[test]
    fn everybody_has_one_place() {
        for known in [
            "0 0 65536\n",
            "0 1000 1\n1 100000 65536\n",
            "0 5 1000\n1000 7000 1\n1001 8000 10\n",
            "0 5 1001\n1001 7000 1\n",
            "5000 5 10\n0 100 2000\n",
            "1000 9 2\n0 1 1\n",
        ] {
            let known = extents(known);
            let all = privileged(0, &known, 2_000_000_000).unwrap();
            let users = |of: &dyn Fn(&Extent) -> u32| -> Vec<u32> {
                let mut users: Vec<u32> = all.iter().flat_map(|extent| of(extent)..of(extent) + extent.2).collect();
                users.sort_unstable();
                users
            };
            let mut expected: Vec<u32> = known.iter().flat_map(|(first, count)| *first..first + count).collect();
            expected.sort_unstable();
            assert_eq!(users(&|extent| extent.0), expected, "inside, of {known:?}");
            assert_eq!(users(&|extent| extent.1), expected, "outside, of {known:?}");
        }
    }

    #[test]
    fn everybody_else_stays_themselves() {
        assert_eq!(privileged(1001, &extents("0 0 4294967295\n"), 2_000_000_000), None);
        assert_eq!(privileged(0, &extents("0 1001 1\n"), 2_000_000_000), None, "root of a namespace of one user");
        assert_eq!(lines(&[(1000, 1001, 1)]), "1000 1001 1\n");
    }
}
