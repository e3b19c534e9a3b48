//! Finds suspicious content in the class files of a submission's test file: mentions of this program's parts and of
//! back doors of the JVM, and members that can turn a failure into a pass.
//!
//! [`findings`] is pure: bytes in, findings out. A finding is no verdict, because honest tests cause some too. Names
//! that are composed at run time are not found; constant ones are, because javac joins them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::workspace::class_file::{ClassContent, ClassFileError};

/// The most findings of a kind that are returned.
const MOST_OF_A_KIND: usize = 20;
/// The most characters of a finding's text.
const MOST_TEXT: usize = 200;

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Our package, `testevo`: the runner and its reports.
    OwnPackage,
    /// Our files in the container, `/testevo`.
    OwnFiles,
    /// `Runtime.halt`, which ends a JVM without its shutdown hooks.
    Halt,
    /// `/proc`: other processes, open files, limits.
    Proc,
    /// `/dev/fd`: open files.
    OpenFiles,
    /// The coverage agent's classes and fields, such as `$jacocoInit`.
    Jacoco,
    /// `Unsafe`, which writes any memory.
    Unsafe,
    /// The interface that attaches to a running JVM.
    Attach,
    /// The JVM's own arguments or command line, which name its agents.
    InputArguments,
    /// An argument that loads an agent.
    JavaAgent,
    /// The interface of agents.
    Instrument,
    /// The compiled form of a production class or of a class whose name is not constant, or the directory of production sources.
    ClassResource,
    /// Services that a library finds by itself, such as JUnit's listeners.
    Services,
    /// A class or lambda that can hide a test's failure from JUnit.
    Interceptor,
    /// An annotation that expects any failure at all.
    BroadExpectation,
    /// A class of the same name as one of the project, which comes first on the class path.
    Replaces,
    /// A class file that can't be read, so its mentions are unknown.
    Unreadable,
}

impl FindingKind {
    /// All kinds, in order.
    pub const ALL: [Self; 17] = [
        Self::OwnPackage,
        Self::OwnFiles,
        Self::Halt,
        Self::Proc,
        Self::OpenFiles,
        Self::Jacoco,
        Self::Unsafe,
        Self::Attach,
        Self::InputArguments,
        Self::JavaAgent,
        Self::Instrument,
        Self::ClassResource,
        Self::Services,
        Self::Interceptor,
        Self::BroadExpectation,
        Self::Replaces,
        Self::Unreadable,
    ];

    /// Returns its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::OwnPackage => "own_package",
            Self::OwnFiles => "own_files",
            Self::Halt => "halt",
            Self::Proc => "proc",
            Self::OpenFiles => "open_files",
            Self::Jacoco => "jacoco",
            Self::Unsafe => "unsafe",
            Self::Attach => "attach",
            Self::InputArguments => "input_arguments",
            Self::JavaAgent => "java_agent",
            Self::Instrument => "instrument",
            Self::ClassResource => "class_resource",
            Self::Services => "services",
            Self::Interceptor => "interceptor",
            Self::BroadExpectation => "broad_expectation",
            Self::Replaces => "replaces",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Suspicious content of a class file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The text, or the intercepting class: at most 200 characters without control characters.
    pub text: String,
}

/// Returns the finding for unreadable class files.
pub fn unreadable(reason: &str) -> Vec<Finding> {
    vec![Finding { kind: FindingKind::Unreadable, text: cleaned(reason) }]
}

/// Returns the findings in class files, sorted, each once, at most twenty of a kind.
///
/// `production` has the binary names of the project's classes on the class path, such as `shop/Price` and `shop/Price$Builder`.
///
/// # Errors
/// [`ClassFileError`] if one of them is not a class file.
pub fn findings<'a>(
    classes: impl IntoIterator<Item = &'a [u8]>,
    production: &BTreeSet<String>,
) -> Result<Vec<Finding>, ClassFileError> {
    let mut found: BTreeMap<FindingKind, BTreeSet<String>> = BTreeMap::new();
    let mut add = |kind: FindingKind, text: &str| {
        let of_kind = found.entry(kind).or_default();
        of_kind.insert(cleaned(text));
        // The first ones in order are kept, whichever class comes first.
        if of_kind.len() > MOST_OF_A_KIND {
            of_kind.pop_last();
        }
    };
    let simple: BTreeSet<&str> = production.iter().map(|name| name.rsplit('/').next().unwrap_or(name)).collect();
    let mut subclasses = Subclasses::default();
    let (mut names_halt, mut has_runtime) = (false, false);
    for bytes in classes {
        let class = ClassContent::read(bytes)?;
        for text in &class.texts {
            mentioned(text).for_each(|kind| add(kind, text));
        }
        for text in class.strings.iter().filter(|text| is_class_resource(text, &simple)) {
            add(FindingKind::ClassResource, text);
        }
        for (owner, name) in &class.references {
            if &**name == "halt" && matches!(&**owner, "java/lang/Runtime" | "java/lang/Shutdown") {
                add(FindingKind::Halt, &format!("{owner}.{name}"));
            }
            if matches!(&**name, "arguments" | "commandLine") && &**owner == "java/lang/ProcessHandle$Info" {
                add(FindingKind::InputArguments, &format!("{owner}.{name}"));
            }
        }
        names_halt |= class.strings.iter().any(|text| &**text == "halt");
        has_runtime |= class.texts.iter().any(|text| is_runtime(text));
        if production.contains(&*class.name) {
            add(FindingKind::Replaces, &class.name);
        }
        if intercepts(&class) {
            add(FindingKind::Interceptor, &class.name);
        }
        for implemented in class.lambdas.iter().filter(|name| INTERCEPTORS.contains(&&***name)) {
            add(FindingKind::Interceptor, &format!("{}: {implemented}", class.name));
        }
        for implemented in proxied(&class) {
            add(FindingKind::Interceptor, &format!("{}: {implemented}", class.name));
        }
        for one in &class.annotated {
            let expects = EXPECTATIONS.contains(&(&*one.annotation, &*one.element));
            if expects && BROAD.contains(&&*one.class) {
                add(FindingKind::BroadExpectation, &one.class);
            }
        }
        subclasses.take(&class);
    }
    subclasses.intercepting().for_each(|name| add(FindingKind::Interceptor, name));
    // May be the name of a method that is called by reflection. Other machines halt, too.
    if names_halt && has_runtime {
        add(FindingKind::Halt, "halt");
    }
    let all = found.into_iter();
    Ok(all.flat_map(|(kind, texts)| texts.into_iter().map(move |text| Finding { kind, text })).collect())
}

/// Tells whether a text among the constants names a class whose objects end the JVM.
fn is_runtime(text: &str) -> bool {
    let dotted = text.replace('/', ".");
    let names = |class: &str| dotted == class || dotted.contains(&format!("L{class};"));
    names("java.lang.Runtime") || names("java.lang.Shutdown")
}

/// Returns the kinds of mention in a text among the constants. Names of classes have slashes or dots.
fn mentioned(text: &str) -> impl Iterator<Item = FindingKind> {
    let dotted = text.replace('/', ".");
    let has_path = |path: &str| {
        text.match_indices(path).any(|(at, _)| matches!(text.as_bytes().get(at + path.len()), None | Some(b'/')))
    };
    let own_files = text.contains("/testevo");
    [
        (FindingKind::OwnPackage, !own_files && text.contains("testevo")),
        (FindingKind::OwnFiles, own_files),
        (FindingKind::Proc, has_path("/proc")),
        (FindingKind::OpenFiles, has_path("/dev/fd")),
        (FindingKind::Jacoco, text.to_ascii_lowercase().contains("jacoco")),
        (FindingKind::Unsafe, ["sun.misc.Unsafe", "jdk.internal.misc.Unsafe"].iter().any(|name| dotted.contains(name))),
        (FindingKind::Attach, dotted.contains("com.sun.tools.attach")),
        (FindingKind::InputArguments, text.contains("getInputArguments")),
        (FindingKind::JavaAgent, text.contains("-javaagent")),
        (FindingKind::Instrument, dotted.contains("java.lang.instrument")),
        (FindingKind::Services, text.contains("META-INF/services")),
    ]
    .into_iter()
    .filter_map(|(kind, found)| found.then_some(kind))
}

/// Tells whether a string names the compiled form of a production class, or of a class that is known only at run time. Sources of
/// production classes tell as much, and the tree of a launch has them.
fn is_class_resource(text: &str, production: &BTreeSet<&str>) -> bool {
    // The character that javac puts in place of a part that is not constant.
    const JOINT: char = '\u{1}';
    if text.contains("src/main/java") {
        return true;
    }
    let Some(path) = text.strip_suffix(".class") else { return false };
    let name = path.rsplit(['/', '.']).next().unwrap_or(path);
    name.is_empty() || name.contains(JOINT) || production.contains(name)
}

/// Interfaces whose objects learn of a test's failure first, and may hide it.
const INTERCEPTORS: [&str; 11] = [
    "org/junit/jupiter/api/extension/TestExecutionExceptionHandler",
    "org/junit/jupiter/api/extension/LifecycleMethodExecutionExceptionHandler",
    "org/junit/jupiter/api/extension/InvocationInterceptor",
    // It may return a subclass that overrides the test method.
    "org/junit/jupiter/api/extension/TestInstanceFactory",
    "org/junit/rules/TestRule",
    "org/junit/rules/MethodRule",
    // A test of JUnit 3's own kind decides itself what becomes of its failure.
    "junit/framework/Test",
    "org/testng/IHookable",
    "org/testng/IInvokedMethodListener",
    "org/testng/ITestListener",
    "org/testng/IConfigurable",
];

/// Elements of annotations that name the failures which make a test pass.
pub const EXPECTATIONS: [(&str, &str); 2] =
    [("org/junit/Test", "expected"), ("org/testng/annotations/Test", "expectedExceptions")];

/// Types of failures that include assertions.
const BROAD: [&str; 5] = [
    "java/lang/Throwable",
    "java/lang/Error",
    "java/lang/AssertionError",
    "junit/framework/AssertionFailedError",
    "org/opentest4j/AssertionFailedError",
];

/// Tells whether a class can hide a test's failure, whatever it overrides.
fn intercepts(class: &ClassContent) -> bool {
    let superclass = class.superclass.as_deref().unwrap_or_default();
    class.interfaces.iter().any(|name| INTERCEPTORS.contains(&&**name))
        || RUNNERS.iter().any(|runner| superclass.starts_with(runner))
}

/// JUnit's own runners and their parts, by the beginnings of their names. A subclass decides which methods run.
const RUNNERS: [&str; 8] = [
    "org/junit/experimental/categories/Categories",
    "org/junit/experimental/runners/",
    "org/junit/experimental/theories/Theories",
    "org/junit/internal/builders/",
    "org/junit/internal/runners/",
    // A runner of JUnit 4 for tests of JUnit 5.
    "org/junit/platform/runner/",
    "org/junit/runner/Runner",
    "org/junit/runners/",
];

/// Methods that make an object of an interface without a class that implements it.
const PROXIES: [(&str, &str); 3] = [
    ("java/lang/invoke/MethodHandleProxies", "asInterfaceInstance"),
    ("java/lang/reflect/Proxy", "newProxyInstance"),
    ("org/mockito/Mockito", "mock"),
];

/// Returns the interceptors that a class names, if it can make objects of interfaces at run time.
fn proxied(class: &ClassContent) -> impl Iterator<Item = &'static str> {
    let makes = class.references.iter().any(|(owner, name)| PROXIES.contains(&(&**owner, &**name)));
    let names = |interceptor: &str| class.texts.iter().any(|text| text.replace('.', "/") == interceptor);
    INTERCEPTORS.into_iter().filter(move |interceptor| makes && names(interceptor))
}

/// Methods that JUnit's own classes call around a test, and that decide what becomes of its failure.
const AROUND: [&str; 21] = [
    "addError",
    "addFailure",
    "apply",
    "checkSucceeds",
    "checkThat",
    "childrenInvoker",
    "classBlock",
    "createTest",
    "invokeTestMethod",
    "methodBlock",
    "methodInvoker",
    "possiblyExpectingExceptions",
    "run",
    "runBare",
    "runChild",
    "runMethods",
    "runProtected",
    "runTest",
    "verify",
    "withAfters",
    "withBefores",
];

/// Packages of JUnit 4 whose classes take part in running tests, besides rules and [`RUNNERS`]. The package `org/junit`
/// is not among them: honest tests extend its `Assert`, and have methods such as `verify` of their own.
const PARTS: [&str; 3] = ["org/junit/experimental/", "org/junit/internal/", "org/junit/runner/"];

/// A class of a file.
struct Subclass {
    superclass: Rc<str>,
    /// The methods of [`AROUND`] that it declares.
    around: Vec<Rc<str>>,
}

/// The classes of a file by name. A class may inherit from one outside of the file through others in it.
#[derive(Default)]
struct Subclasses(BTreeMap<Rc<str>, Subclass>);

impl Subclasses {
    fn take(&mut self, class: &ClassContent) {
        let Some(superclass) = class.superclass.clone() else { return };
        let around = class.methods.iter().filter(|method| AROUND.contains(&&***method)).cloned().collect();
        self.0.insert(class.name.clone(), Subclass { superclass, around });
    }

    /// Returns the names of classes that override what decides a failure.
    fn intercepting(&self) -> impl Iterator<Item = &str> {
        let outside = self.outside();
        let superclass = move |name: &str| outside.get(name).copied().unwrap_or_default();
        let intercepts = move |(name, one): &(&Rc<str>, &Subclass)| overrides(superclass(name), &one.around);
        self.0.iter().filter(intercepts).map(|(name, _)| &**name)
    }

    /// Returns for each class the nearest superclass that is not in the file. It is empty for classes that inherit from
    /// themselves.
    fn outside(&self) -> BTreeMap<&str, &str> {
        let mut outside: BTreeMap<&str, &str> = BTreeMap::new();
        for name in self.0.keys() {
            let (mut at, mut passed) = (&**name, Vec::new());
            // No class is passed twice: a file may have a long line of subclasses.
            while let Some(one) = self.0.get(at).filter(|_| !outside.contains_key(at)) {
                outside.insert(at, "");
                passed.push(at);
                at = &one.superclass;
            }
            let end = outside.get(at).copied().unwrap_or(at);
            outside.extend(passed.into_iter().map(|class| (class, end)));
        }
        outside
    }
}

/// Tells whether the methods that a class declares can hide a failure, given its superclass outside of the file.
fn overrides(superclass: &str, around: &[Rc<str>]) -> bool {
    let declares = |names: &[&str]| around.iter().any(|method| names.contains(&&**method));
    match superclass {
        // It keeps failures until `verify` throws them.
        "org/junit/rules/ErrorCollector" => declares(&["apply", "verify", "addError", "checkSucceeds", "checkThat"]),
        "junit/framework/TestCase" => declares(&["run", "runBare", "runTest"]),
        "junit/framework/TestSuite" => declares(&["run", "runTest"]),
        "junit/framework/TestResult" => declares(&["run", "runProtected", "addError", "addFailure"]),
        _ if superclass.starts_with("junit/extensions/") => declares(&["run", "runTest"]),
        // Other subclasses of rules learn of a failure, but do not decide what happens with it.
        _ if superclass.starts_with("org/junit/rules/") => declares(&["apply"]),
        _ if PARTS.iter().any(|part| superclass.starts_with(part)) => !around.is_empty(),
        // Runners of other libraries, such as Mockito's. A subclass may return one of JUnit's own statements, which
        // expects any failure, or a test object whose class overrides the test method.
        _ if superclass.ends_with("Runner") => declares(&[
            "childrenInvoker",
            "classBlock",
            "createTest",
            "invokeTestMethod",
            "methodBlock",
            "methodInvoker",
            "possiblyExpectingExceptions",
            "run",
            "runChild",
            "runMethods",
            "withAfters",
            "withBefores",
        ]),
        // A library's base class may extend JUnit 3's, where only a test case declares it.
        _ => declares(&["runBare"]),
    }
}

fn cleaned(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(MOST_TEXT).map(clean).collect()
}

#[cfg(test)]
mod tests;
