//! Who gives Harbor's trials their rewards: a module on the host, or a script in a container of its own.
//!
//! The container holds this program and a bundle for scorers. Tests run in containers inside it, so it may make namespaces
//! and mounts, which Docker's defaults forbid. Without them the program makes no container, and the trial has no reward.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::script;
use crate::execution::container::places::PROJECT;
use crate::task::Task;

/// Modules of the verifier on the host, by their file names beside the tasks.
pub const HOST_MODULES: [(&str, &str); 2] = [("testevo_sandbox_harbor.py", HOST), REWARDS];
/// The module of the host's verifier.
const HOST: &str = include_str!("../../../clients/harbor/testevo_sandbox_harbor.py");
/// The module that both verifiers share.
const REWARDS: (&str, &str) =
    ("testevo_sandbox_rewards.py", include_str!("../../../clients/harbor/testevo_sandbox_rewards.py"));
/// The script of a verifier's container.
const VERIFY: (&str, &str) = ("verify.py", include_str!("../../../clients/harbor/verify.py"));
/// Where the container has the program, the bundle and the script.
const HOME: &str = "opt/testevo-sandbox";
/// The script that Harbor runs where the verifier is on the host and its user named none. It writes no reward.
const NO_VERIFIER: &str = "#!/bin/sh\n\
    echo 'This task is scored on the host, by testevo_sandbox_harbor:HostVerifier; see --verifier.' >&2\nexit 1\n";
/// The script that Harbor runs in a verifier's container.
const IN_CONTAINER: &str = "#!/bin/sh\nexec python3 -Es /opt/testevo-sandbox/verify.py\n";

/// The compose file of a verifier's container. Tests' containers need namespaces, mounts and a `/proc` without masks. The data
/// directory is a volume, because overlayfs can't have its upper layer on the overlayfs of a Docker container.
pub const COMPOSE: &str = "\
services:
  main:
    init: true
    network_mode: none
    cap_add: [SYS_ADMIN]
    security_opt: [seccomp=unconfined, apparmor=unconfined, systempaths=unconfined]
    volumes: [/var/lib/testevo-sandbox]
";

/// Returns the script that Harbor calls `tests/test.sh`.
pub(super) fn test_script(in_container: bool) -> &'static str {
    if in_container { IN_CONTAINER } else { NO_VERIFIER }
}

/// Returns the variables of a task's verifier.
pub(super) fn environment(task: &Task) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("TESTEVO_SANDBOX_DATA_DIR", "/var/lib/testevo-sandbox".to_owned()),
        ("TESTEVO_TARGET", format!("{PROJECT}/{}", task.test_file)),
        ("TESTEVO_TASK", task.id.to_string()),
    ])
}

/// The files of a verifier's layer, before they are an archive.
pub struct VerifierTree<'a> {
    root: &'a Path,
}

impl<'a> VerifierTree<'a> {
    /// Writes everything but the bundle into `root`, an empty directory.
    ///
    /// # Errors
    /// I/O errors.
    pub fn write(root: &'a Path) -> io::Result<Self> {
        let (home, tests) = (root.join(HOME), root.join("tests"));
        fs::create_dir_all(&home)?;
        fs::create_dir(&tests)?;
        for (name, text) in [VERIFY, REWARDS] {
            fs::write(home.join(name), text)?;
        }
        script(&tests.join("test.sh"), IN_CONTAINER)?;
        fs::copy("/proc/self/exe", home.join("testevo-sandbox"))?;
        Ok(Self { root })
    }

    /// Returns the path for the bundle.
    pub fn bundle(&self) -> PathBuf {
        self.root.join(HOME).join("bundle")
    }
}
