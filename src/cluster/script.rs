//! The script that the scheduler runs for each shard.

use std::path::Path;

use super::sharded_run::ShardedRun;
use crate::manifest::MEMORY_PER_JOB;
use crate::settings::SlurmSettings;

/// The digits of the shard that runs, in a script.
const SHARD: &str = "${SLURM_ARRAY_TASK_ID}";

/// Returns the script of every shard of a run. `program` is this program's path on the nodes, `data_dir` the data
/// directory's.
///
/// A shard's node and its exit code are kept in files, each written at once: a job that was killed leaves no exit code.
pub fn render(
    sharded: &ShardedRun,
    program: &Path,
    (data_dir, directory): (&Path, &Path),
    settings: &SlurmSettings,
) -> String {
    let mut words = vec![quoted_path(program)];
    words.extend(sharded.asked.arguments.iter().map(|argument| quoted(argument)));
    let (run, shards) = (quoted(&sharded.run_prefix()), sharded.shards);
    words.push(format!("--shard \"{SHARD}/{shards}\" --run-id {run}\"{SHARD}\""));
    let (command, data_dir, directory) = (words.join(" "), quoted_path(data_dir), quoted_path(directory));
    let mut scratch = String::new();
    if let Some(wanted) = &settings.scratch {
        scratch = format!("export TESTEVO_SANDBOX_SCRATCH={}\n", with_variables(wanted));
    }
    if let Some(gib) = settings.scratch_gib {
        scratch.push_str(&format!("export TESTEVO_SANDBOX_SCRATCH_GIB={gib}\n"));
    }
    // As `jobs_at_once` counts.
    let (per_job, spare) = (MEMORY_PER_JOB >> 20, (MEMORY_PER_JOB / 8) >> 20);
    format!(
        "#!/bin/sh\n\
         # The allocation says how much may run at once, not the machine: its processors, and its memory in MiB.\n\
         TESTEVO_SANDBOX_JOBS=\"${{SLURM_CPUS_PER_TASK:-${{SLURM_CPUS_ON_NODE:-1}}}}\"\n\
         memory=\"${{SLURM_MEM_PER_NODE:-$((${{SLURM_MEM_PER_CPU:-0}} * TESTEVO_SANDBOX_JOBS))}}\"\n\
         if [ \"$memory\" -le 0 ]; then\n\
         # Slurm does not count memory here: these processors' share of the machine's.\n\
         all=$(nproc --all 2>/dev/null || echo 1)\n\
         [ \"$all\" -ge \"$TESTEVO_SANDBOX_JOBS\" ] || all=$TESTEVO_SANDBOX_JOBS\n\
         total=$(sed -n 's/^MemTotal: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo)\n\
         memory=$((${{total:-0}} / 1024 * TESTEVO_SANDBOX_JOBS / all))\n\
         fi\n\
         if [ \"$memory\" -gt 0 ] && [ \"$TESTEVO_SANDBOX_JOBS\" -gt $(((memory + {spare}) / {per_job})) ]; then\n\
         TESTEVO_SANDBOX_JOBS=$(((memory + {spare}) / {per_job}))\n\
         if [ \"$TESTEVO_SANDBOX_JOBS\" = 0 ]; then TESTEVO_SANDBOX_JOBS=1; fi\n\
         fi\n\
         TESTEVO_SANDBOX_DATA_DIR={data_dir}\n\
         export TESTEVO_SANDBOX_JOBS TESTEVO_SANDBOX_DATA_DIR\n\
         {scratch}shard={directory}/\"shard-{SHARD}\"\n\
         printf '%s\\n' \"${{SLURMD_NODENAME:-}}\" > \"$shard.node.new\" && mv -f \"$shard.node.new\" \"$shard.node\"\n\
         # Slurm ends the shell first, and at once whatever outlives it: the program has to hear of it, and to be waited for.\n\
         told=\n\
         program=\n\
         trap 'told=1; [ -z \"$program\" ] || kill -TERM \"$program\" 2>/dev/null' TERM INT\n\
         {command} &\n\
         program=$!\n\
         [ -z \"$told\" ] || kill -TERM \"$program\" 2>/dev/null\n\
         wait \"$program\"\n\
         status=$?\n\
         if [ -n \"$told\" ]; then\n\
         trap '' TERM INT\n\
         wait \"$program\"\n\
         again=$?\n\
         [ \"$again\" = 127 ] || status=$again\n\
         fi\n\
         printf '%s\\n' \"$status\" > \"$shard.exit.new\" && mv -f \"$shard.exit.new\" \"$shard.exit\"\n\
         exit \"$status\"\n"
    )
}

/// Returns a word of a POSIX shell in which it replaces variables. Other text than paths with variables means itself.
fn with_variables(text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "/._-${}".contains(c);
    match text.chars().all(harmless) {
        true => format!("\"{text}\""),
        false => quoted(text),
    }
}

/// Returns a word of a POSIX shell that means this path.
pub fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Returns a word of a POSIX shell that means this text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use fs_err as fs;

    use super::super::sharded_run::Asked;
    use super::*;

    /// Slurm tells the shell alone that a job ends.
    #[test]
    fn a_program_hears_of_the_end_and_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let text = format!(
            "#!/bin/sh\ntrap 'sleep 0.3; echo ended > {said}; exit 130' TERM\necho begun > {begun}\nwhile :; do sleep 0.05; done\n",
            said = path("said").display(),
            begun = path("begun").display()
        );
        fs::write(path("program"), text).unwrap();
        fs::set_permissions(path("program"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let asked = Asked { directory: "/".to_owned(), arguments: vec!["validate".to_owned()], inputs: None };
        let sharded = ShardedRun::new("run".to_owned(), asked, 1);
        let places = (Path::new("/d"), directory.path());
        let script = render(&sharded, &path("program"), places, &SlurmSettings::default());
        let mut shell = Command::new("sh").args(["-c", &script]).env("SLURM_ARRAY_TASK_ID", "1").spawn().unwrap();
        while !path("begun").exists() {
            assert_eq!(shell.try_wait().unwrap(), None);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let process = rustix::process::Pid::from_child(&shell);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        assert_eq!(shell.wait().unwrap().code(), Some(130));
        assert_eq!(fs::read_to_string(path("said")).unwrap(), "ended\n");
        assert_eq!(fs::read_to_string(path("shard-1.exit")).unwrap(), "130\n");
    }

    #[test]
    fn arguments_arrive_as_they_are_and_the_exit_code_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("it's a program");
        let said = directory.path().join("said");
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$@\" \"$TESTEVO_SANDBOX_JOBS\" \"$TESTEVO_SANDBOX_DATA_DIR\" \
             \"$TESTEVO_SANDBOX_SCRATCH\" > '{}'\nexit 3\n",
            said.display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let arguments = ["score", "--predictions", "a b'c\"$(d)\n`e`*"].map(str::to_owned);
        let asked = Asked { directory: "/".to_owned(), arguments: arguments.to_vec(), inputs: None };
        let sharded = ShardedRun::new("run".to_owned(), asked, 12);
        let scratch = (Some("$SLURM_JOB_TMP/of me".to_owned()), Some("${NODE_TMP}/own".to_owned()));
        let [quoted, replaced] =
            [scratch.0, scratch.1].map(|scratch| SlurmSettings { scratch, ..SlurmSettings::default() });
        let render = |settings| render(&sharded, &program, (Path::new("/d d"), directory.path()), settings);
        assert!(render(&quoted).contains("\nexport TESTEVO_SANDBOX_SCRATCH='$SLURM_JOB_TMP/of me'\n"));
        let script = render(&replaced);
        let mut shell = Command::new("sh");
        // Where Slurm does not count memory: twenty processors and 32 GiB, so five processors have 8 GiB.
        let tools = directory.path().join("tools");
        fs::create_dir(&tools).unwrap();
        for (name, says) in [("nproc", "20"), ("sed", "33554432")] {
            fs::write(tools.join(name), format!("#!/bin/sh\necho {says}\n")).unwrap();
            fs::set_permissions(tools.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        for (memory, jobs) in [("16384", "4"), ("100000", "5"), ("2000", "1"), ("0", "2"), ("7700", "2")] {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &script])
                .env("SLURM_ARRAY_TASK_ID", "7")
                .env("SLURM_CPUS_ON_NODE", "5")
                .env("PATH", &path);
            shell.env("SLURM_MEM_PER_NODE", memory).env_remove("SLURM_CPUS_PER_TASK").env_remove("SLURM_MEM_PER_CPU");
            shell.status().unwrap();
            assert_eq!(fs::read_to_string(&said).unwrap().lines().rev().nth(2), Some(jobs), "{memory}");
        }
        shell.env_remove("SLURM_MEM_PER_NODE").env_remove("SLURM_MEM_PER_CPU");
        shell
            .args(["-c", &script])
            .env("SLURM_ARRAY_TASK_ID", "7")
            .env("SLURM_CPUS_ON_NODE", "5")
            .env("PATH", &path)
            .env("NODE_TMP", "/node tmp")
            .env("SLURMD_NODENAME", "n1");
        let status = shell.env_remove("SLURM_CPUS_PER_TASK").status().unwrap();
        assert_eq!(status.code(), Some(3));
        let expected =
            "score\n--predictions\na b'c\"$(d)\n`e`*\n--shard\n7/12\n--run-id\nrun-shard-7\n2\n/d d\n/node tmp/own\n"
                .to_owned();
        assert_eq!(fs::read_to_string(&said).unwrap(), expected);
        assert_eq!(fs::read_to_string(directory.path().join("shard-7.exit")).unwrap(), "3\n");
        assert_eq!(fs::read_to_string(directory.path().join("shard-7.node")).unwrap(), "n1\n");
    }
}
