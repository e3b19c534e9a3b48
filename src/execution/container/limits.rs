//! Limits of an execution's containers and commands.

use crate::engine::spec::{CommandLimits, ContainerLimits};

/// Limits of every execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
}

impl From<&crate::manifest::Limits> for ExecutionLimits {
    fn from(limits: &crate::manifest::Limits) -> Self {
        const MIB: u64 = 1 << 20;
        // Beyond a command's own limits: for an init that hangs.
        const GRACE_SECONDS: u64 = 60;
        let command = |wall_seconds, cpu_seconds| CommandLimits {
            wall_seconds,
            cpu_seconds,
            output_bytes: limits.output_mib.saturating_mul(MIB),
            // A flood alone decides nothing: what is over the cap is dropped, and time ends it.
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
        }
    }
}
