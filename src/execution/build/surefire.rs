//! The project's Surefire settings for the JVM of a launch. Source: protocol §2.4.
//!
//! Agents are left out, because they would watch, change or slow down the measured code. Also left out are settings
//! that the sandbox decides: a heap beyond its limit, the class path, the main class. So are settings with which the image's JVM
//! does not start, such as module options on JDK 8: projects have them for other JDKs, and published labels come from launches
//! without any.

mod starting;

use serde::{Deserialize, Serialize};

use self::starting::{findable, starts};
use crate::execution::build::recording::TestSettings;
use crate::execution::container::places::PROJECT;

/// The project's Surefire settings that a launch takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JvmSettings {
    /// Arguments for the JVM, after the fixed ones.
    pub arguments: Vec<String>,
    /// Environment variables, which override the fixed ones.
    pub environment: Vec<(String, String)>,
    /// Working directory, absolute and inside the project; `None` for the module's.
    pub working_directory: Option<String>,
}

/// Options of the JVM whose value is the next word.
const WITH_VALUE: [&str; 8] = [
    "--enable-native-access",
    "--add-opens",
    "--add-exports",
    "--add-modules",
    "--add-reads",
    "--patch-module",
    "--limit-modules",
    "--upgrade-module-path",
];

/// What Surefire replaces with the number of a forked JVM or its thread, which is 1 where there is one.
const NUMBERS: [&str; 2] = ["${surefire.forkNumber}", "${surefire.threadNumber}"];

/// Options that choose the main class or class path, with their value in the next word.
const OVERRIDDEN: [&str; 8] = ["-cp", "-classpath", "--class-path", "-p", "--module-path", "-jar", "-m", "--module"];

/// Beginnings of options that load an agent.
const AGENTS: [&str; 5] = ["-javaagent:", "-agentlib:", "-agentpath:", "-Xrun", "-Xdebug"];

/// Beginnings of options that set the initial heap: the JVM would not start if it exceeded the limit.
const INITIAL_HEAP: [&str; 3] = ["-Xms", "-XX:InitialHeapSize=", "-XX:InitialRAMPercentage="];

impl JvmSettings {
    /// Returns the settings that apply in the module directory `module` (absolute) on this JDK, with a heap of at most
    /// `heap_mib`.
    pub fn of(settings: &TestSettings, module: &str, jdk: u32, heap_mib: u64) -> Self {
        let line = numbered(settings.arg_line.as_deref().unwrap_or_default());
        let properties = settings.system_properties.iter().filter(|(name, _)| !name.is_empty() && !name.contains('='));
        let properties = properties.map(|(name, value)| format!("-D{name}={}", numbered(value)));
        let mut arguments = arguments(&line, jdk, heap_mib);
        arguments.extend(properties.filter(|property| starts(property, jdk)));
        let environment = settings.environment.iter().filter(|(name, _)| !name.is_empty() && !name.contains('='));
        Self {
            arguments,
            environment: environment.map(|(name, value)| (name.clone(), numbered(value))).collect(),
            working_directory: settings.working_directory.as_deref().and_then(|path| inside(&numbered(path), module)),
        }
    }

    /// Tells whether an argument chooses a garbage collector. A JVM accepts only one such argument.
    pub fn chooses_collector(&self) -> bool {
        self.arguments.iter().any(|argument| {
            argument.strip_prefix("-XX:+Use").is_some_and(|rest| rest.ends_with("GC") || rest == "ConcMarkSweepGC")
        })
    }
}

/// Returns the arguments in a line that apply to launches on this JDK.
fn arguments(line: &str, jdk: u32, heap_mib: u64) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words(line).into_iter();
    while let Some(word) = words.next() {
        // A property that is not set. Under Surefire, the JVM would take it for the main class and exit.
        let unresolved = word.contains("@{") || word.starts_with("${");
        if OVERRIDDEN.contains(&word.as_str()) {
            words.next();
        } else if WITH_VALUE.contains(&word.as_str()) {
            let value = words.next().filter(|_| starts(&word, jdk));
            if let Some(value) = value.and_then(|value| findable(&word, &value, jdk)) {
                kept.extend([word, value]);
            }
        } else if let Some((option, value)) = word.split_once('=').filter(|(option, _)| WITH_VALUE.contains(option)) {
            let value = findable(option, value, jdk).filter(|_| starts(&word, jdk));
            kept.extend(value.map(|value| format!("{option}={value}")));
        } else if word.starts_with('-')
            && starts(&word, jdk)
            && !unresolved
            && !AGENTS.iter().chain(&INITIAL_HEAP).any(|agent| word.starts_with(agent))
            && heap_of(&word).is_none_or(|bytes| bytes <= heap_mib << 20)
        {
            kept.push(word);
        }
    }
    kept
}

/// Returns a setting as Surefire's only forked JVM gets it.
fn numbered(setting: &str) -> String {
    NUMBERS.iter().fold(setting.to_owned(), |setting, number| setting.replace(number, "1"))
}

/// Returns the largest heap that an option sets, in bytes. A value that is not understood counts as too large.
fn heap_of(word: &str) -> Option<u64> {
    let size = word.strip_prefix("-Xmx").or_else(|| word.strip_prefix("-XX:MaxHeapSize="));
    let Some(size) = size else {
        return word.starts_with("-XX:MaxRAM").then_some(u64::MAX);
    };
    let (digits, shift) = match size.char_indices().last() {
        Some((at, 'k' | 'K')) => (&size[..at], 10),
        Some((at, 'm' | 'M')) => (&size[..at], 20),
        Some((at, 'g' | 'G')) => (&size[..at], 30),
        Some((at, 't' | 'T')) => (&size[..at], 40),
        _ => (size, 0),
    };
    Some(digits.parse::<u64>().map_or(u64::MAX, |count| count.saturating_mul(1 << shift)))
}

/// Splits a line as Surefire does: blanks separate words; quotes of either kind hold words together and are removed.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words.retain(|word| !word.contains('\0'));
    words
}

/// Returns the path as an absolute one inside the project, without `.` and `..`; `None` if it leads elsewhere.
fn inside(path: &str, module: &str) -> Option<String> {
    let absolute = if path.starts_with('/') { path.to_owned() } else { format!("{module}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in absolute.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let plain = format!("/{}", parts.join("/"));
    let below = plain.strip_prefix(PROJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    (below && !plain.contains('\0')).then_some(plain)
}

#[cfg(test)]
mod tests;
