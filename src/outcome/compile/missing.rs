//! Names what a build lacked: artifacts that no origin gave, and packages of other JDKs.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Event, FailedMojo, Seen};

/// An artifact that Maven asked for in vain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UnresolvedArtifact {
    /// `group:artifact:extension[:classifier]:version`.
    pub artifact: String,
    /// The goal that asked, if one was running.
    #[serde(default)]
    mojo: Option<String>,
    /// The module that was built, if one was.
    #[serde(default)]
    project: Option<String>,
}

impl UnresolvedArtifact {
    /// Returns the goal and project that asked for the artifact; `None` before Maven builds any module.
    pub fn wanted_by(&self) -> Option<String> {
        match (&self.mojo, &self.project) {
            (Some(goal), Some(project)) => Some(format!("{goal} in {project}")),
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (None, None) => None,
        }
    }
}

/// Returns the artifacts that Maven asked for in vain, each once, and the POM that Maven's error names as asking.
pub fn unresolved(recording: &[u8]) -> (Vec<UnresolvedArtifact>, Option<String>) {
    let mut artifacts: Vec<UnresolvedArtifact> = Vec::new();
    let mut pom = None;
    for line in recording.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Event::ArtifactUnresolved(one)) if artifacts.iter().all(|known| known.artifact != one.artifact) => {
                artifacts.push(one);
            }
            Ok(Event::SessionEnded { failures, .. }) => {
                let causes = failures.iter().flat_map(|failure| &failure.causes);
                pom = causes.filter_map(|cause| asking_pom(cause.message.as_deref()?)).next();
            }
            _ => {}
        }
    }
    (artifacts, pom)
}

/// Returns the POM in Maven's message `Non-resolvable parent POM for G:A:V: …`.
pub(super) fn asking_pom(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("Non-resolvable ")?;
    let (kind, rest) = rest.split_once(" for ")?;
    let pom = rest.split_once(": ")?.0;
    let named = kind.len() <= 20 && !pom.is_empty() && !pom.contains(char::is_whitespace);
    named.then(|| format!("the POM of {pom}"))
}

/// Says which packages of older JDKs the compiler did not find; `None` if there are none.
pub(super) fn missing_in_jdk(seen: &Seen, failed: &FailedMojo) -> Option<String> {
    let texts = failed.messages.iter().flat_map(|message| message.text.lines()).chain(failed.output.lines());
    let packages: BTreeSet<&str> = texts.filter_map(|line| package_of_a_jdk(line.trim())).take(5).collect();
    let java = seen.java.as_deref().unwrap_or("of the image");
    let names = packages.iter().copied().collect::<Vec<_>>().join(", ");
    (!packages.is_empty()).then(|| {
        format!(
            "the JDK {java} lacks {names}, which other JDKs have; the manifest's overrides may name another `jdk`, or \
             extension jars for JDK 8"
        )
    })
}

/// Says which later JDK the build needs; `None` if nothing asks for one.
pub(super) fn needs_later_jdk(seen: &Seen, failed: &FailedMojo) -> Option<String> {
    let causes = failed.causes.iter().filter_map(|cause| cause.message.as_deref());
    let said = failed.messages.iter().map(|message| message.text.as_str()).chain(causes);
    let needed = said.flat_map(str::lines).filter_map(wanted_jdk).max()?;
    let java = seen.java.as_deref()?;
    // A build may run another JDK than Maven's.
    let is_later = feature(java).is_some_and(|jdk| needed > jdk);
    is_later.then(|| {
        format!("the build needs JDK {needed}, and has JDK {java}; the manifest's overrides may name another `jdk`")
    })
}

/// Returns the number of a JDK, given its `java.version`: 8 of `1.8.0_402`, 17 of `17.0.9`.
fn feature(version: &str) -> Option<u32> {
    let version = version.strip_prefix("1.").unwrap_or(version);
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the JDK that javac or a JVM asks for in a line: as a release that it does not know, or as the version of a class
/// file that is too new.
fn wanted_jdk(line: &str) -> Option<u32> {
    /// The version of class files of JDK 1.0 would be 44.
    const BEFORE_FIRST: u32 = 44;
    let number_after = |text: &str| -> Option<u32> {
        let rest = line.split_once(text)?.1;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    let release = || match line.ends_with(" not supported") {
        true => number_after("release version "),
        false => number_after("invalid target release: ").or_else(|| number_after("invalid source release: ")),
    };
    let of_class_file = || {
        let version = number_after("class file has wrong version ")
            .or_else(|| number_after("more recent version of the Java Runtime (class file version "))?;
        version.checked_sub(BEFORE_FIRST)
    };
    // An old release that a later javac no longer knows is refused in the same words.
    release().or_else(of_class_file).filter(|jdk| (9..100).contains(jdk))
}

/// Returns the package of javac's message `package P does not exist`, if a JDK has or had it.
fn package_of_a_jdk(line: &str) -> Option<&str> {
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let package = line.strip_prefix("package ")?.split(' ').next().filter(|_| line.ends_with(" does not exist"))?;
    let starts = |root: &&str| package.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    JDK_PACKAGES.iter().any(starts).then_some(package)
}

/// Roots of packages that some JDK has and another lacks. Libraries have other packages below `com.sun`.
const JDK_PACKAGES: [&str; 21] = [
    "com.sun.awt",
    "com.sun.glass",
    "com.sun.image.codec",
    "com.sun.imageio",
    "com.sun.java",
    "com.sun.javadoc",
    "com.sun.javafx",
    "com.sun.jndi",
    "com.sun.management",
    "com.sun.media.sound",
    "com.sun.net",
    "com.sun.nio",
    "com.sun.org.apache",
    "com.sun.prism",
    "com.sun.rowset",
    "com.sun.security",
    "com.sun.tools",
    "com.sun.xml.internal",
    "javafx",
    "netscape.javascript",
    "sun",
];
