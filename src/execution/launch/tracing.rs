//! Traces with our own tracer the project's methods that a launch enters, and which of them tests call. JaCoCo can't
//! tell: it records no callers, and marks no line of a method that throws before its first probe. Source: protocol §4.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::artifact::key::key;
use crate::digest::Digest;
use crate::engine::spec::ReadOnlyMount;
use crate::execution::container::ToolJars;
use crate::execution::container::file_name;
use crate::execution::container::places::TRACER;
use crate::execution::launch::agent::Agent;
use crate::focal::own::Entered;

/// The file that the tracer writes.
const TRACE: &str = "/work/tracer.txt";
/// The file's largest size in bytes.
const MOST_TRACE_BYTES: u64 = 16 << 20;

/// The methods that a launch entered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The methods of the project's main classes.
    pub entered: Vec<Entered>,
    /// Test classes that were loaded, each with its superclass and interfaces.
    pub tests: BTreeMap<String, BTreeSet<String>>,
    /// Classes that the tracer could not change; their methods are unknown.
    pub untraced: Vec<String>,
}

impl Trace {
    /// Returns a test class and all test classes that it inherits from.
    pub fn lineage(&self, class: &str) -> BTreeSet<String> {
        let (mut found, mut left) = (BTreeSet::new(), vec![class.to_owned()]);
        while let Some(class) = left.pop() {
            if found.insert(class.clone()) {
                left.extend(self.tests.get(&class).into_iter().flatten().cloned());
            }
        }
        found
    }
}

/// Why the tracer's output can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line is not UTF-8 or not in the tracer's format; the value is its number.
    #[error("the tracer's file has a line that is none: line {0}")]
    Line(usize),
    /// The last line is missing.
    #[error("the tracer's file was cut off")]
    CutOff,
}

/// Returns the tracer.
pub(in crate::execution) fn agent(jars: &ToolJars) -> Agent {
    let argument = format!("-javaagent:{TRACER}={TRACE}");
    let mounts = vec![ReadOnlyMount { source: jars.tracer.clone(), target: TRACER.to_owned() }];
    Agent { name: "trace", argument, writes: (TRACE.to_owned(), MOST_TRACE_BYTES), mounts }
}

/// Returns the key of a method's trace, given the key of its launch.
pub fn trace_key(launch: Digest, jars: &ToolJars) -> Digest {
    key("trace", 2, &(launch, file_name(&jars.tracer)))
}

/// Reads the tracer's output of several launches of one method: what any of them entered.
///
/// # Errors
/// [`TraceError`].
pub fn read_traces(texts: &[Vec<u8>]) -> Result<Trace, TraceError> {
    let mut whole = Trace::default();
    for text in texts {
        let Trace { entered, tests, untraced } = read_trace(text)?;
        for one in entered {
            let is_same = |known: &&mut Entered| {
                (&known.class, &known.method, &known.descriptor) == (&one.class, &one.method, &one.descriptor)
            };
            match whole.entered.iter_mut().find(is_same) {
                Some(known) => {
                    known.callers.extend(one.callers);
                    known.lines.extend(one.lines);
                }
                None => whole.entered.push(one),
            }
        }
        whole.tests.extend(tests);
        let is_new = |class: &String| !whole.untraced.contains(class);
        let new: Vec<String> = untraced.into_iter().filter(is_new).collect();
        whole.untraced.extend(new);
    }
    Ok(whole)
}

/// Reads the tracer's output of one launch.
///
/// # Errors
/// [`TraceError`].
pub fn read_trace(text: &[u8]) -> Result<Trace, TraceError> {
    let mut trace = Trace::default();
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let wrong = || TraceError::Line(index + 1);
        let line = line.strip_suffix(b"\n").ok_or(TraceError::CutOff)?;
        let line = std::str::from_utf8(line).map_err(|_| wrong())?;
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.as_slice() {
            ["end"] => return Ok(trace),
            ["test", class, parents] => {
                let parents = parents.split(',').filter(|parent| !parent.is_empty()).map(str::to_owned);
                trace.tests.insert((*class).to_owned(), parents.collect());
            }
            ["untraced", class] => trace.untraced.push((*class).to_owned()),
            ["entered", class, source, method, descriptor, lines, callers] => {
                let (package, file) = source.rsplit_once('/').unwrap_or(("", source));
                // Class files have no greater line numbers.
                let lines = lines.split(',').filter(|line| !line.is_empty()).map(|line| line.parse().map(u16::into));
                let callers = callers.split(',').filter(|caller| !caller.is_empty());
                trace.entered.push(Entered {
                    class: (*class).to_owned(),
                    package: package.to_owned(),
                    file: file.to_owned(),
                    method: (*method).to_owned(),
                    descriptor: (*descriptor).to_owned(),
                    callers: callers.map(str::to_owned).collect(),
                    lines: lines.collect::<Result<BTreeSet<usize>, _>>().map_err(|_| wrong())?,
                });
            }
            _ => return Err(wrong()),
        }
    }
    Err(TraceError::CutOff)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::execution::container::places::ANALYSER;

    #[test]
    fn what_the_tracer_wrote_is_read() {
        let agent = agent(&ToolJars::below(Path::new("/x")));
        assert_eq!(agent.argument, "-javaagent:/testevo/tracer.jar=/work/tracer.txt");
        let manifest = include_str!("../../../images/tracer/resources/META-INF/MANIFEST.MF");
        assert!(manifest.contains(&format!("Boot-Class-Path: {ANALYSER} {TRACER}\n")));
        let text = "test\tp.ATest\tp.Base,java.lang.Object\ntest\tp.Base\t\nuntraced\tp/q/B\nentered\tp/q/A$I\tp/q/A.java\tm\t(I)V\t3,5\tp.ATest#m,p.ATest#n\nentered\tA\tA.java\t<init>\t()V\t\t\nend\n";
        let trace = read_trace(text.as_bytes()).unwrap();
        assert_eq!(trace.untraced, ["p/q/B"]);
        let lineage = ["java.lang.Object", "p.ATest", "p.Base"].map(str::to_owned);
        assert_eq!(trace.lineage("p.ATest"), BTreeSet::from(lineage));
        let [first, second] = trace.entered.as_slice() else { panic!("{trace:?}") };
        assert_eq!((first.package.as_str(), first.file.as_str(), first.method.as_str()), ("p/q", "A.java", "m"));
        assert_eq!((first.class.as_str(), first.descriptor.as_str()), ("p/q/A$I", "(I)V"));
        assert_eq!(first.lines, BTreeSet::from([3, 5]));
        assert_eq!(first.callers, BTreeSet::from(["p.ATest#m".to_owned(), "p.ATest#n".to_owned()]));
        assert_eq!(second.callers, BTreeSet::new());
        assert_eq!((second.package.as_str(), second.file.as_str(), second.lines.len()), ("", "A.java", 0));
        // Another launch of the method entered one method more, and called one from elsewhere.
        let other = "test\tp.CTest\tp.ATest\nuntraced\tp/q/B\nentered\tp/q/A$I\tp/q/A.java\tm\t(I)V\t3,5\tp.CTest#k\nentered\tB\tB.java\tm\t()V\t\t\nend\n";
        let both = read_traces(&[text.as_bytes().to_vec(), other.as_bytes().to_vec()]).unwrap();
        assert_eq!((both.entered.len(), both.tests.len(), both.untraced.len()), (3, 3, 1), "{both:?}");
        assert!(both.entered[0].callers.contains("p.ATest#m") && both.entered[0].callers.contains("p.CTest#k"));
        assert!(read_traces(&[text.as_bytes().to_vec(), b"end".to_vec()]).is_err());
        let shown = |text: &[u8]| read_trace(text).unwrap_err().to_string();
        for cut in [&b""[..], b"untraced\tp/q/B\n", b"end", b"entered\tA\tA.java\tm\t()V\t3\t"] {
            assert_eq!(shown(cut), "the tracer's file was cut off", "{}", String::from_utf8_lossy(cut));
        }
        for bad in [
            &b"\xff\nend\n"[..],
            b"left\tA\nend\n",
            b"entered\tA\tA.java\tm\t()V\t65536\t\nend\n",
            b"entered\tA\tA.java\tm\t()V\tx\t\nend\n",
            b"\nend\n",
        ] {
            assert_eq!(shown(bad), "the tracer's file has a line that is none: line 1");
        }
    }
}
