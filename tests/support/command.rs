//! Running the program as a user does.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fs_err as fs;

/// A directory of its own to run the program in.
pub(crate) struct CommandLine {
    directory: tempfile::TempDir,
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        for name in foreign_settings() {
            command.env_remove(name);
        }
        command.env("TESTEVO_SANDBOX_DATA_DIR", "data").env("HOME", self.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.current_dir(self.path()).args(arguments).spawn().unwrap()
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
