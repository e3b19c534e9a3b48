//! Checks the machine: its system, clock, memory, disk, and the network's environment variables.

use std::path::Path;

use jiff::Timestamp;
use reqwest::Url;
use serde_json::json;

use super::{Check, gibibytes};
use crate::host;
use crate::image::tree::SOURCE_DATE_EPOCH;
use crate::manifest::MEMORY_PER_JOB;

/// Images, layers, locked files and the engine's copy of them for one repository, in bytes.
const DISK_FOR_ONE: u64 = 4 << 30;
/// As above, for a few dozen repositories with shared layers.
const DISK_FOR_MANY: u64 = 25 << 30;
/// Clock difference in seconds above which certificates and signed indexes may be refused.
const CLOCK_TOLERANCE: i64 = 300;

/// Checks operating system and architecture: images are for Linux on x86-64.
pub fn platform() -> Check {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let (system, release, machine) = (text(names.sysname()), text(names.release()), text(names.machine()));
    platform_of(&system, &release, &machine)
}

fn platform_of(system: &str, release: &str, machine: &str) -> Check {
    let detail = format!("{system} {release} on {machine}");
    let check = match (system, machine) {
        ("Linux", "x86_64") => Check::ok("platform", detail),
        _ => Check::fail("platform", detail, "use an x86-64 machine with Linux: images and this program are for it"),
    };
    check.with(json!({"system": system, "release": release, "machine": machine}))
}

/// Checks the clock against the date of images, and against an origin's clock if one is known.
pub fn clock(now: Timestamp, origins_time: Option<Timestamp>) -> Check {
    let detail = now.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let advice = "set the clock: certificates and signed package indexes are refused where it is wrong";
    let skew = origins_time.map(|time| now.as_second() - time.as_second());
    let epoch = i64::try_from(SOURCE_DATE_EPOCH).unwrap_or(i64::MAX);
    let check = match skew {
        _ if now.as_second() < epoch => {
            Check::fail("clock", format!("{detail}, which lies before this program was made"), advice)
        }
        Some(skew) if skew.abs() > CLOCK_TOLERANCE => {
            let direction = if skew > 0 { "ahead of" } else { "behind" };
            Check::warn("clock", format!("{detail}, {} s {direction} an origin's clock", skew.abs()), advice)
        }
        Some(_) => Check::ok("clock", format!("{detail}, as an origin has it")),
        None => Check::ok("clock", detail),
    };
    check.with(json!({"time": now.to_string(), "ahead_of_origin_seconds": skew}))
}

/// Checks memory and processors for `jobs` parallel jobs.
pub fn resources(jobs: usize) -> Check {
    resources_of(host::processors().get(), host::memory_bytes(), host::available_memory_bytes(), jobs)
}

fn resources_of(processors: usize, memory: Option<u64>, available: Option<u64>, jobs: usize) -> Check {
    let facts = json!({
        "processors": processors, "memory_bytes": memory, "available_memory_bytes": available, "jobs": jobs,
    });
    let processors = crate::output::counted(processors, "processor", "processors");
    let jobs_text = crate::output::counted(jobs, "job", "jobs");
    let memory_text = match (memory, available) {
        (Some(memory), Some(available)) => {
            format!("{} of memory ({} available)", gibibytes(memory), gibibytes(available))
        }
        (Some(memory), None) => format!("{} of memory", gibibytes(memory)),
        (None, _) => "an unknown amount of memory".to_owned(),
    };
    let detail = format!("{processors}, {memory_text}: {jobs_text} at once");
    let needed = MEMORY_PER_JOB.saturating_mul(jobs as u64);
    // A machine reports slightly less memory than its nominal size.
    let check = match memory {
        Some(memory) if memory.saturating_add(needed / 8) < needed => Check::warn(
            "resources",
            detail,
            format!(
                "a job may use {} while it compiles: run fewer at once with `--jobs`, or lower `compile_memory_mib` in the \
                 manifests",
                gibibytes(MEMORY_PER_JOB)
            ),
        ),
        _ => Check::ok("resources", detail),
    };
    check.with(facts)
}

/// Checks the free disk space at a directory; `what` names the directory's purpose.
pub fn disk(what: &str, directory: &Path) -> Check {
    let shown = directory.display().to_string();
    match host::free_bytes(directory) {
        Ok(free) => disk_of(what, &shown, free),
        Err(error) => Check::warn(
            "disk",
            format!("{what} `{shown}`: the free space is not known: {error}"),
            "check that the directory can be reached",
        ),
    }
}

fn disk_of(what: &str, directory: &str, free: u64) -> Check {
    let detail = format!("{what} `{directory}` has {} free", gibibytes(free));
    let check = match free {
        ..DISK_FOR_ONE => {
            Check::fail("disk", detail, "free at least 4 GiB; `testevo-sandbox images prune` removes unused layers")
        }
        DISK_FOR_ONE..DISK_FOR_MANY => {
            Check::warn("disk", detail, "enough for a few repositories; many together need about 25 GiB")
        }
        _ => Check::ok("disk", detail),
    };
    check.with(json!({"directory": directory, "free_bytes": free}))
}

/// Checks the environment variables of the network. `variable` returns a variable's value; only names and validity are
/// reported.
pub fn network(variable: &dyn Fn(&str) -> Option<String>, certificates: usize) -> Vec<Check> {
    let set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
    let proxies: Vec<&str> = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        .into_iter()
        .filter(set)
        .collect();
    let exceptions: Vec<&str> = ["NO_PROXY", "no_proxy"].into_iter().filter(set).collect();
    let unusable: Vec<&str> =
        proxies.iter().copied().filter(|name| !variable(name).is_some_and(|value| is_proxy_address(&value))).collect();
    let names = |names: &[&str]| names.join(", ");
    let all: Vec<&str> = proxies.iter().chain(&exceptions).copied().collect();
    let proxy = match (unusable.is_empty(), all.is_empty()) {
        (false, _) => Check::warn(
            "proxies",
            format!("{} can't be understood as an address", names(&unusable)),
            "write a proxy as http://host:port",
        ),
        (true, true) => Check::ok("proxies", "none is named in the environment"),
        (true, false) => Check::ok("proxies", format!("set: {}", names(&all))),
    };
    let files: Vec<&str> = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter(set).collect();
    let absent: Vec<&str> =
        files.iter().copied().filter(|name| variable(name).is_some_and(|path| !Path::new(&path).exists())).collect();
    let source = if files.is_empty() { "the system's".to_owned() } else { format!("by {}", names(&files)) };
    let detail =
        format!("{}, {source}", crate::output::counted(certificates, "trusted certificate", "trusted certificates"));
    let authorities = if certificates == 0 {
        Check::warn(
            "certificates",
            detail,
            "no origin can be asked over HTTPS: install the system's CA certificates or name yours in SSL_CERT_FILE",
        )
    } else if !absent.is_empty() {
        Check::warn("certificates", format!("{detail}; {} leads nowhere", names(&absent)), "correct or unset it")
    } else {
        Check::ok("certificates", detail)
    };
    vec![
        proxy.with(json!({"set": all, "unusable": unusable})),
        authorities.with(json!({"set": files, "absent": absent, "certificates": certificates})),
    ]
}

fn is_proxy_address(text: &str) -> bool {
    let text = text.trim();
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    Url::parse(&full).is_ok_and(|url| url.has_host())
}

#[cfg(test)]
mod tests;
