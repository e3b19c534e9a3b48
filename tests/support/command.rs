//! Running the program as a user does.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fs_err as fs;

/// A directory of its own to run the program in.
pub(crate) struct CommandLine {
    directory: tempfile::TempDir,
}

/// What a run of the program took.
pub(crate) struct Taken {
    pub(crate) code: Option<i32>,
    pub(crate) peak_bytes: u64,
    pub(crate) stdout_bytes: u64,
}

impl CommandLine {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// Returns the working directory. The data directory is `data` below it.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file below the working directory.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs the program with nothing of this machine's settings, and returns exit code, stdout and stderr as one text.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.run_with(&[], arguments)
    }

    /// Runs the program as [`CommandLine::run`] does, with these variables.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> String {
        self.finish(assert_cmd::Command::cargo_bin("testevo-sandbox").unwrap(), variables, arguments)
    }

    /// Runs the program as [`CommandLine::run_with`] does, for a user with this umask.
    pub(crate) fn run_under(&self, umask: &str, variables: &[(&str, &str)], arguments: &[&str]) -> String {
        let mut shell = assert_cmd::Command::new("sh");
        shell.args(["-c", &format!("umask {umask} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_testevo-sandbox")]);
        self.finish(shell, variables, arguments)
    }

    /// Starts the program, which says nothing, with nothing of this machine's settings.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.started(arguments, Stdio::null())
    }

    /// Starts the program as [`CommandLine::start`] does, and returns what it says as well.
    pub(crate) fn start_telling(&self, arguments: &[&str]) -> (Child, impl Iterator<Item = String>) {
        let mut child = self.started(arguments, Stdio::piped());
        let said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        (child, said)
    }

    fn started(&self, arguments: &[&str], stderr: Stdio) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        for name in foreign_settings() {
            command.env_remove(name);
        }
        command.env("TESTEVO_SANDBOX_DATA_DIR", "data").env("HOME", self.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        command.current_dir(self.path()).args(arguments).spawn().unwrap()
    }

    /// Runs the program as [`CommandLine::run`] does, with so much address space and no more.
    pub(crate) fn run_within(&self, kibibytes: usize, arguments: &[&str]) -> String {
        let mut shell = assert_cmd::Command::new("sh");
        let limited = format!("ulimit -v {kibibytes} && exec \"$0\" \"$@\"");
        shell.args(["-c", &limited, env!("CARGO_BIN_EXE_testevo-sandbox")]);
        self.finish(shell, &[], arguments)
    }

    /// Runs the program as [`CommandLine::run`] does, as the root of a user namespace of its own, after these commands of a
    /// shell there.
    pub(crate) fn run_confined(&self, commands: &str, arguments: &[&str]) -> String {
        let mut unshare = assert_cmd::Command::new("unshare");
        let script = format!("{commands} && exec \"$0\" \"$@\"");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
        unshare.arg(env!("CARGO_BIN_EXE_testevo-sandbox"));
        self.finish(unshare, &[], arguments)
    }

    /// Runs the program and returns what that took. What it may have taken is no less than what this process has, which
    /// the kernel counts as its child's until the program is there.
    pub(crate) fn measure(&self, arguments: &[&str]) -> Taken {
        let stdout = self.path().join("stdout");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        command.args(arguments).arg("--data-dir").arg(self.path().join("data")).current_dir(self.path());
        let child = command.stdout(fs::File::create(&stdout).unwrap().into_parts().0).spawn().unwrap();
        let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        let pid = libc::pid_t::try_from(child.id()).unwrap();
        // SAFETY: both pointers are to this function's own values, of the types that the call fills in. The child is not
        // waited for elsewhere.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        assert_eq!(waited, pid);
        // There is nothing left of it to wait for.
        drop(child);
        // SAFETY: it was zeroed before, which is a valid value, and filled in since.
        let usage = unsafe { usage.assume_init() };
        Taken {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            peak_bytes: u64::try_from(usage.ru_maxrss).unwrap() << 10,
            stdout_bytes: fs::metadata(stdout).unwrap().len(),
        }
    }

    fn finish(&self, mut command: assert_cmd::Command, variables: &[(&str, &str)], arguments: &[&str]) -> String {
        for name in foreign_settings() {
            command.env_remove(name);
        }
        let output = command
            .env("TESTEVO_SANDBOX_DATA_DIR", "data")
            .env("HOME", self.path())
            .env_remove("COLUMNS")
            .envs(variables.iter().copied())
            .current_dir(self.path())
            .args(arguments)
            .output()
            .unwrap();
        let mut text = format!("exit {}\n", output.status.code().unwrap());
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                let content = String::from_utf8(bytes.clone()).unwrap();
                text.push_str(&format!("---- {name}\n{content}"));
            }
        }
        text.replace(self.path().to_str().unwrap(), "[DIRECTORY]")
    }

    /// Returns the paths of all files below the working directory, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut directories = vec![self.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    directories.push(entry.path());
                } else {
                    found.push(entry.path().strip_prefix(self.path()).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }
}

/// Returns the variables of this machine by which the program, or git, would behave in another way.
fn foreign_settings() -> impl Iterator<Item = OsString> {
    let foreign = |name: &OsString| {
        let name = name.to_string_lossy();
        ["TESTEVO_SANDBOX_", "GIT_"].iter().any(|start| name.starts_with(start))
    };
    std::env::vars_os().map(|(name, _)| name).filter(foreign)
}
