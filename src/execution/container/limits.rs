//! Limits of an execution's containers and commands.

use serde::Serialize;

use crate::engine::spec::{CommandLimits, ContainerLimits};

/// Wall time limit of a launch, as a multiple of its processor time limit. It only ends programs that sleep: a busy
/// machine does not slow a launch by this factor.
pub const WALL_TIMES: u64 = 4;

/// Added to a command's own limits, in case the init hangs.
const GRACE_SECONDS: u64 = 60;

/// Limits of every execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExecutionLimits {
    /// Of the container that compiles.
    pub compile: ContainerLimits,
    /// Of the container that launches.
    pub launch: ContainerLimits,
    /// Of Maven.
    pub compile_command: CommandLimits,
    /// Of one method's JVM.
    pub launch_command: CommandLimits,
    /// Scratch of a compile container, in bytes.
    pub compile_scratch_bytes: u64,
    /// Scratch of a launch container, in bytes.
    pub launch_scratch_bytes: u64,
    /// Largest heap of a method's JVM, in MiB.
    pub launch_heap_mib: u64,
    /// Of Maven when it compiles a submission; `None` for `compile_command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission_compile_command: Option<CommandLimits>,
}

impl ExecutionLimits {
    /// Returns these limits with another processor time of launches, in seconds, and the wall time that follows from it.
    #[must_use]
    pub fn with_launch_seconds(mut self, seconds: u64) -> Self {
        self.launch_command = within_processor_time(self.launch_command, seconds);
        self.launch.wall_seconds = self.launch_command.wall_seconds.saturating_add(GRACE_SECONDS);
        self
    }

    /// Returns the limits of submissions for a task of these time classes. No limit grows.
    #[must_use]
    pub fn within(mut self, launch_seconds: Option<u64>, compile_seconds: Option<u64>) -> Self {
        let lower = |own: CommandLimits, seconds: u64| {
            let class = within_processor_time(own, seconds);
            CommandLimits {
                cpu_seconds: own.cpu_seconds.min(class.cpu_seconds),
                wall_seconds: own.wall_seconds.min(class.wall_seconds),
                ..own
            }
        };
        // The container's own limits stay unchanged, so that any container of the pool fits.
        if let Some(seconds) = launch_seconds {
            self.launch_command = lower(self.launch_command, seconds);
        }
        self.submission_compile_command = compile_seconds.map(|seconds| lower(self.compile_command, seconds));
        self
    }

    /// Returns the limits that can change the build of a code revision, which all tasks share.
    pub(in crate::execution) fn of_builds(&self) -> impl Serialize {
        (self.compile, self.compile_command, self.compile_scratch_bytes, self.launch_heap_mib)
    }
}

fn within_processor_time(limits: CommandLimits, seconds: u64) -> CommandLimits {
    CommandLimits { cpu_seconds: seconds, wall_seconds: seconds.saturating_mul(WALL_TIMES), ..limits }
}

impl From<&crate::manifest::Limits> for ExecutionLimits {
    fn from(limits: &crate::manifest::Limits) -> Self {
        const MIB: u64 = 1 << 20;
        let command = |wall_seconds, cpu_seconds| CommandLimits {
            wall_seconds,
            cpu_seconds,
            output_bytes: limits.output_mib.saturating_mul(MIB),
            // A flood of output changes no result by itself: output over the cap is dropped, and the time limit ends
            // the program.
            flood_bytes: u64::MAX,
        };
        Self {
            compile: ContainerLimits {
                memory_bytes: limits.compile_memory_mib.saturating_mul(MIB),
                cpus: limits.compile_cpus,
                processes: limits.compile_processes,
                wall_seconds: limits.compile_wall_seconds.saturating_add(GRACE_SECONDS),
            },
            launch: ContainerLimits {
                memory_bytes: limits.run_memory_mib.saturating_mul(MIB),
                cpus: limits.run_cpus,
                processes: limits.run_processes,
                wall_seconds: limits.run_wall_seconds.saturating_add(GRACE_SECONDS),
            },
            compile_command: command(
                limits.compile_wall_seconds,
                limits.compile_wall_seconds.saturating_mul(u64::from(limits.compile_cpus)),
            ),
            launch_command: command(limits.run_wall_seconds, limits.run_cpu_seconds),
            compile_scratch_bytes: limits.compile_scratch_mib.saturating_mul(MIB),
            launch_scratch_bytes: limits.run_scratch_mib.saturating_mul(MIB),
            launch_heap_mib: limits.run_heap_mib,
            submission_compile_command: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Limits;

    fn times(limits: CommandLimits) -> (u64, u64) {
        (limits.cpu_seconds, limits.wall_seconds)
    }

    #[test]
    fn a_class_lowers_limits_and_never_raises_them() {
        let own = ExecutionLimits::from(&Limits::default());
        assert_eq!((times(own.launch_command), times(own.compile_command)), ((300, 600), (1200, 600)));
        for (class, expected) in [(30, (30, 120)), (120, (120, 480)), (300, (300, 600)), (600, (300, 600))] {
            let within = own.within(Some(class), None);
            assert_eq!(times(within.launch_command), expected, "{class}");
            assert_eq!(within, ExecutionLimits { launch_command: within.launch_command, ..own });
        }
        for (class, expected) in [(90, (90, 360)), (600, (600, 600)), (6000, (1200, 600))] {
            let within = own.within(None, Some(class));
            assert_eq!(within.submission_compile_command.map(times), Some(expected), "{class}");
            assert_eq!(
                within,
                ExecutionLimits { submission_compile_command: within.submission_compile_command, ..own }
            );
        }
        assert_eq!(own.within(None, None), own);
    }

    #[test]
    fn a_limit_that_is_asked_for_holds_whatever_the_repositorys_is() {
        let own = ExecutionLimits::from(&Limits::default());
        for seconds in [5, 3000] {
            let asked = own.with_launch_seconds(seconds);
            assert_eq!(times(asked.launch_command), (seconds, 4 * seconds));
            assert_eq!(asked.launch.wall_seconds, 4 * seconds + 60);
        }
    }

    #[test]
    fn limits_that_earlier_programs_wrote_can_be_read() {
        let own = ExecutionLimits::from(&Limits::default());
        let text = serde_json::to_string(&own).unwrap();
        assert!(!text.contains("submission"), "{text}");
        assert_eq!(serde_json::from_str::<ExecutionLimits>(&text).unwrap(), own);
    }
}
