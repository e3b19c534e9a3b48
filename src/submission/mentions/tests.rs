//! What is found in class files that are put together here.

use super::*;

/// A class file in the making: its constants, and what refers to them.
#[derive(Default)]
struct Class {
    /// Without one it is `p/ATest`.
    name: Option<&'static str>,
    constants: Vec<Vec<u8>>,
    interfaces: Vec<u16>,
    superclass: Option<&'static str>,
    methods: Vec<(u16, Vec<u8>)>,
}

impl Class {
    fn push(&mut self, constant: Vec<u8>) -> u16 {
        let known = self.constants.iter().position(|known| *known == constant);
        let at = known.unwrap_or_else(|| {
            self.constants.push(constant);
            self.constants.len() - 1
        });
        u16::try_from(at + 1).unwrap()
    }

    fn refer(&mut self, tag: u8, to: &[u16]) -> u16 {
        self.push(std::iter::once(tag).chain(to.iter().flat_map(|index| index.to_be_bytes())).collect())
    }

    fn text(&mut self, text: &str) -> u16 {
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        self.push([&[1][..], &length, text.as_bytes()].concat())
    }

    fn class(&mut self, name: &str) -> u16 {
        let name = self.text(name);
        self.refer(7, &[name])
    }

    fn string(mut self, text: &str) -> Self {
        let text = self.text(text);
        self.refer(8, &[text]);
        self
    }

    fn mentions_class(mut self, name: &str) -> Self {
        self.class(name);
        self
    }

    fn member(&mut self, name: &str, descriptor: &str) -> u16 {
        let [name, descriptor] = [name, descriptor].map(|text| self.text(text));
        self.refer(12, &[name, descriptor])
    }

    fn calls(mut self, owner: &str, name: &str) -> Self {
        let (owner, member) = (self.class(owner), self.member(name, "(I)V"));
        self.refer(10, &[owner, member]);
        self
    }

    fn lambda(mut self, implements: &str) -> Self {
        let member = self.member("apply", &format!("()L{implements};"));
        self.refer(18, &[0, member]);
        self
    }

    fn implements(mut self, name: &str) -> Self {
        let class = self.class(name);
        self.interfaces.push(class);
        self
    }

    fn extends(self, superclass: &'static str) -> Self {
        Self { superclass: Some(superclass), ..self }
    }

    fn method(mut self, name: &str) -> Self {
        let name = self.text(name);
        self.methods.push((name, vec![0, 0]));
        self
    }

    /// Adds a method with an annotation that has an array of a class in it, beside a number.
    fn expecting(mut self, annotation: &str, element: &str, class: &str) -> Self {
        let [name, attribute, annotation, element, timeout, class] =
            ["m", "RuntimeVisibleAnnotations", &format!("L{annotation};"), element, "timeout", &format!("L{class};")]
                .map(|text| self.text(text).to_be_bytes());
        let number = self.push(vec![3, 0, 0, 0, 9]).to_be_bytes();
        let value =
            [&[0, 1][..], &annotation, &[0, 2], &timeout, b"I", &number, &element, b"[\0\x01c", &class].concat();
        let length = u32::try_from(value.len()).unwrap().to_be_bytes();
        let name = u16::from_be_bytes(name);
        self.methods.push((name, [&[0, 1][..], &attribute, &length, &value].concat()));
        self
    }

    fn bytes(mut self) -> Vec<u8> {
        let (own, object) = (self.class(self.name.unwrap_or("p/ATest")), self.superclass.unwrap_or("java/lang/Object"));
        let superclass = self.class(object);
        let descriptor = self.text("()V").to_be_bytes();
        let count = u16::try_from(self.constants.len() + 1).unwrap();
        let mut bytes = [&[0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 52][..], &count.to_be_bytes()].concat();
        bytes.extend(self.constants.iter().flatten());
        for number in [1, own, superclass, u16::try_from(self.interfaces.len()).unwrap()] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.interfaces.iter().flat_map(|index| index.to_be_bytes()));
        bytes.extend([0, 0]);
        bytes.extend(u16::try_from(self.methods.len()).unwrap().to_be_bytes());
        for (name, attributes) in &self.methods {
            bytes.extend([0, 1]);
            bytes.extend(name.to_be_bytes());
            bytes.extend(descriptor);
            bytes.extend(attributes);
        }
        bytes.extend([0, 0]);
        bytes
    }
}

/// Returns the kinds and texts that are found in a class.
fn found(class: Class) -> Vec<(FindingKind, String)> {
    let production = BTreeSet::from(["shop/Price".to_owned(), "shop/Price$Builder".to_owned(), "q/BTest".to_owned()]);
    let found = findings([class.bytes().as_slice()], &production).unwrap();
    found.into_iter().map(|finding| (finding.kind, finding.text)).collect()
}

#[test]
fn texts_are_found_and_what_looks_like_them_is_not() {
    use FindingKind::*;
    for (text, kinds) in [
        ("testevo.runner.Main", vec![OwnPackage]),
        ("/testevo/runner.jar", vec![OwnFiles]),
        ("halt", vec![]),
        ("/proc/self/fd/3", vec![Proc]),
        ("/proc", vec![Proc]),
        ("/process/1", vec![]),
        ("/dev/fd/1", vec![OpenFiles]),
        ("/dev/fdisk", vec![]),
        ("$jacocoInit", vec![Jacoco]),
        ("org.JaCoCo.agent", vec![Jacoco]),
        ("jdk.internal.misc.Unsafe", vec![Unsafe]),
        ("Unsafe", vec![]),
        ("com.sun.tools.attach.VirtualMachine", vec![Attach]),
        ("getInputArguments", vec![InputArguments]),
        ("-javaagent:x.jar", vec![JavaAgent]),
        ("java.lang.instrument.Instrumentation", vec![Instrument]),
        ("META-INF/services/x", vec![Services]),
        ("/shop/Price.class", vec![ClassResource]),
        ("Price$Builder.class", vec![ClassResource]),
        ("\u{1}.class", vec![ClassResource]),
        (".class", vec![ClassResource]),
        ("/shop/ATest.class", vec![]),
        ("Price.java", vec![]),
        ("src/main/java/shop/Price.java", vec![ClassResource]),
        ("../core/src/main/java", vec![ClassResource]),
        ("src/main/resources/price.txt", vec![]),
        ("System.exit", vec![]),
    ] {
        let expected: Vec<_> = kinds.into_iter().map(|kind| (kind, cleaned(text))).collect();
        assert_eq!(found(Class::default().string(text)), expected, "{text}");
    }
}

#[test]
fn references_are_found() {
    use FindingKind::*;
    let halt = |owner: &str, name: &str| found(Class::default().calls(owner, name));
    assert_eq!(halt("java/lang/Runtime", "halt"), [(Halt, "java/lang/Runtime.halt".to_owned())]);
    assert_eq!(halt("java/lang/Runtime", "exit"), []);
    assert_eq!(halt("shop/Machine", "halt"), []);
    // A name for reflection means something where there is an object to call it on.
    let named = |name: &str, owner: &str| found(Class::default().string(name).calls(owner, "x"));
    assert_eq!(named("halt", "java/lang/Runtime"), [(Halt, "halt".to_owned())]);
    assert_eq!(named("halted", "java/lang/Runtime"), []);
    assert_eq!(named("halt", "java/lang/RuntimeException"), []);
    for text in ["java.lang.Runtime", "java.lang.Shutdown", "()Ljava/lang/Runtime;"] {
        assert_eq!(found(Class::default().string("halt").string(text)), [(Halt, "halt".to_owned())], "{text}");
    }
    for (name, kind) in [
        ("sun/misc/Unsafe", Unsafe),
        ("testevo/runner/Main", OwnPackage),
        ("org/jacoco/agent/rt/RT", Jacoco),
        ("java/lang/instrument/Instrumentation", Instrument),
        ("com/sun/tools/attach/VirtualMachine", Attach),
    ] {
        assert_eq!(found(Class::default().mentions_class(name)), [(kind, name.to_owned())]);
    }
    let arguments = found(Class::default().calls("java/lang/management/RuntimeMXBean", "getInputArguments"));
    assert_eq!(arguments, [(InputArguments, "getInputArguments".to_owned())]);
    let process = |name: &str| found(Class::default().calls("java/lang/ProcessHandle$Info", name));
    assert_eq!(process("commandLine"), [(InputArguments, "java/lang/ProcessHandle$Info.commandLine".to_owned())]);
    assert_eq!(process("startInstant"), []);
}

#[test]
fn what_may_swallow_a_failure_is_found() {
    let own = |class: Class| {
        let found = found(class);
        assert!(found.iter().all(|(kind, _)| *kind == FindingKind::Interceptor), "{found:?}");
        found.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    let new = Class::default;
    for (class, intercepts) in [
        (new().implements("org/junit/jupiter/api/extension/TestExecutionExceptionHandler"), true),
        (new().implements("java/lang/Runnable").implements("org/junit/rules/TestRule"), true),
        (new().implements("org/junit/jupiter/api/extension/BeforeEachCallback"), false),
        (new().implements("java/lang/Thread$UncaughtExceptionHandler"), false),
        (new().extends("org/junit/runners/BlockJUnit4ClassRunner"), true),
        (new().extends("org/junit/runner/Runner"), true),
        (new().extends("org/junit/rules/ExternalResource").method("before"), false),
        (new().extends("org/junit/rules/ExternalResource").method("apply"), true),
        (new().implements("org/junit/jupiter/api/extension/TestInstanceFactory"), true),
        (new().implements("org/junit/jupiter/api/extension/TestInstancePostProcessor"), false),
        (new().extends("org/junit/rules/ErrorCollector").method("verify"), true),
        (new().extends("org/junit/rules/ErrorCollector").method("helper"), false),
        (new().extends("org/junit/rules/Verifier").method("verify"), false),
        (new().extends("org/mockito/junit/MockitoJUnitRunner").method("run"), true),
        (new().extends("org/mockito/junit/MockitoJUnitRunner").method("name"), false),
        (new().extends("shop/LibraryTestCase").method("runBare"), true),
        (new().extends("shop/LibraryTestCase").method("runTest"), false),
        (new().extends("junit/framework/TestCase").method("testOne").method("setUp"), false),
        (new().extends("junit/framework/TestCase").method("runTest"), true),
        (new().method("runTest").method("apply"), false),
    ] {
        assert_eq!(own(class), if intercepts { vec!["p/ATest"] } else { vec![] });
    }
    assert_eq!(own(new().lambda("org/junit/rules/TestRule")), ["p/ATest: org/junit/rules/TestRule"]);
    assert_eq!(own(new().lambda("java/util/function/Supplier")), [""; 0]);
    let handler = "org/junit/jupiter/api/extension/TestExecutionExceptionHandler";
    let proxy = || new().calls("java/lang/reflect/Proxy", "newProxyInstance");
    assert_eq!(own(proxy().mentions_class(handler)), [format!("p/ATest: {handler}")]);
    assert_eq!(own(proxy().string(&handler.replace('/', "."))), [format!("p/ATest: {handler}")]);
    assert_eq!(own(proxy().mentions_class("java/util/List")), [""; 0]);
    assert_eq!(own(new().mentions_class(handler)), [""; 0], "nothing makes an object of it");
}

#[test]
fn subclasses_of_junits_own_runners_are_found() {
    let is_found = |superclass, method: &str| {
        let found = found(Class::default().extends(superclass).method(method));
        assert!(found.iter().all(|(kind, _)| *kind == FindingKind::Interceptor), "{found:?}");
        !found.is_empty()
    };
    for (superclass, method, expected) in [
        // Whatever they override, as below `org/junit/runners`.
        ("org/junit/experimental/theories/Theories", "methodBlock", true),
        ("org/junit/experimental/theories/Theories", "helper", true),
        ("org/junit/experimental/runners/Enclosed", "runChild", true),
        ("org/junit/experimental/categories/Categories", "classBlock", true),
        ("org/junit/internal/runners/JUnit4ClassRunner", "invokeTestMethod", true),
        ("org/junit/internal/runners/JUnit4ClassRunner", "runMethods", true),
        ("org/junit/internal/runners/JUnit38ClassRunner", "createAdaptingListener", true),
        ("org/junit/internal/builders/AllDefaultPossibilitiesBuilder", "runnerForClass", true),
        ("org/junit/platform/runner/JUnitPlatform", "run", true),
        // Other classes of JUnit 4, by what they override.
        ("org/junit/runner/JUnitCore", "run", true),
        ("org/junit/runner/JUnitCore", "helper", false),
        ("org/junit/runner/notification/RunListener", "testFailure", false),
        ("org/junit/experimental/theories/ParameterSupplier", "getValueSources", false),
        ("org/junit/internal/TextListener", "testFailure", false),
        // Base classes of honest tests.
        ("org/junit/Assert", "verify", false),
        ("org/junit/Assert", "run", false),
        ("org/junit/jupiter/api/Assertions", "verify", false),
        // Runners of other libraries.
        ("org/springframework/test/context/junit4/SpringRunner", "possiblyExpectingExceptions", true),
        ("org/springframework/test/context/junit4/SpringRunner", "withAfters", true),
        ("org/springframework/test/context/junit4/SpringRunner", "createTest", true),
        ("org/springframework/test/context/junit4/SpringRunner", "helper", false),
        ("shop/BaseTest", "createTest", false),
        ("java/lang/Object", "withBefores", false),
    ] {
        assert_eq!(is_found(superclass, method), expected, "{superclass} {method}");
    }
}

#[test]
fn a_class_between_hides_no_override() {
    let named = |name: &'static str, class: Class| Class { name: Some(name), ..class };
    let of = |between: Class, own: Class| {
        let classes = [named("p/Between", between).bytes(), own.extends("p/Between").bytes()];
        let found = findings(classes.iter().map(Vec::as_slice), &BTreeSet::new()).unwrap();
        found.into_iter().map(|finding| (finding.kind, finding.text)).collect::<Vec<_>>()
    };
    let own = [(FindingKind::Interceptor, "p/ATest".to_owned())];
    let new = Class::default;
    assert_eq!(of(new().extends("junit/framework/TestCase"), new().method("runTest")), own);
    assert_eq!(of(new().extends("org/junit/rules/ExternalResource"), new().method("apply")), own);
    assert_eq!(of(new(), new().method("runTest")), []);
    assert_eq!(of(new().extends("p/ATest"), new().method("runTest")), [], "each inherits from the other");
}

#[test]
fn each_class_is_passed_once() {
    const MANY: usize = 20_000;
    let class = |name: String, superclass: String| {
        let around = vec![Rc::from("runTest")];
        (Rc::<str>::from(name), Subclass { superclass: Rc::from(superclass), around })
    };
    let line = (0..MANY).map(|number| class(format!("p/A{number}"), format!("p/A{}", number + 1)));
    let end = class(format!("p/A{MANY}"), "junit/framework/TestCase".to_owned());
    let line = Subclasses(line.chain([end]).collect());
    assert!(line.outside().values().all(|outside| *outside == "junit/framework/TestCase"));
    assert_eq!(line.intercepting().count(), MANY + 1);
    let circle = (0..MANY).map(|number| class(format!("p/A{number}"), format!("p/A{}", (number + 1) % MANY)));
    let above = class("p/B".to_owned(), "p/A7".to_owned());
    let circle = Subclasses(circle.chain([above]).collect());
    assert!(circle.outside().values().all(|outside| outside.is_empty()));
    assert_eq!((circle.outside().len(), circle.intercepting().count()), (MANY + 1, 0));
}

#[test]
fn expectations_that_anything_meets_are_found() {
    for (annotation, element, class, is_broad) in [
        ("org/junit/Test", "expected", "java/lang/Throwable", true),
        ("org/junit/Test", "expected", "java/lang/AssertionError", true),
        ("org/junit/Test", "expected", "java/lang/IllegalStateException", false),
        ("org/junit/Test", "other", "java/lang/Throwable", false),
        ("org/testng/annotations/Test", "expectedExceptions", "java/lang/Error", true),
        // No failed assertion is one.
        ("org/junit/Test", "expected", "java/lang/Exception", false),
        ("shop/Test", "expected", "java/lang/Throwable", false),
    ] {
        let expected = if is_broad { vec![(FindingKind::BroadExpectation, class.to_owned())] } else { vec![] };
        assert_eq!(found(Class::default().expecting(annotation, element, class)), expected, "{annotation} {class}");
    }
}

#[test]
fn findings_are_sorted_bounded_and_clean() {
    let many = (0..50).fold(Class::default(), |class, number| class.string(&format!("/proc/{number:02}\n")));
    let long = Class::default().string(&format!("jacoco{}", "é".repeat(500))).string("/proc/00\n").bytes();
    let found = findings([long.as_slice(), many.bytes().as_slice()], &BTreeSet::new()).unwrap();
    assert!(found.is_sorted());
    let texts = |kind| found.iter().filter(move |one| one.kind == kind).map(|one| one.text.as_str());
    let expected: Vec<String> = (0..MOST_OF_A_KIND).map(|number| format!("/proc/{number:02}\u{fffd}")).collect();
    assert_eq!(texts(FindingKind::Proc).collect::<Vec<_>>(), expected);
    assert_eq!(texts(FindingKind::Jacoco).map(|text| text.chars().count()).collect::<Vec<_>>(), [MOST_TEXT]);
    for kind in FindingKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

/// What `javac --release 8 -g:source,lines` of JDK 17 makes of this, beside stand-ins for JUnit's two types:
///
/// ```java
/// package shop;
///
/// public class PriceTest {
///     static final String SHARE = "/pr" + "oc/self";
///     static final long NUMBER = 5L;
///     public final org.junit.rules.TestRule rule = (base, description) -> base;
///
///     @org.junit.Test(expected = Error.class, timeout = 9)
///     public void ends() throws Exception {
///         getClass().getResource("Price" + ".class");
///         double half = 0.5;
///         Runtime.getRuntime().halt((int) (NUMBER * half));
///     }
/// }
/// ```
const COMPILED: &[u8] = include_bytes!("PriceTest.class");

#[test]
fn classes_of_javac_are_read() {
    use FindingKind::*;
    let found = findings([COMPILED], &BTreeSet::from(["Price".to_owned()])).unwrap();
    let found: Vec<_> = found.iter().map(|finding| (finding.kind, finding.text.as_str())).collect();
    let expected = [
        (Halt, "java/lang/Runtime.halt"),
        (Proc, "/proc/self"),
        (ClassResource, "Price.class"),
        (Interceptor, "shop/PriceTest: org/junit/rules/TestRule"),
        (BroadExpectation, "java/lang/Error"),
    ];
    assert_eq!(found, expected);
    let class = ClassContent::read(COMPILED).unwrap();
    assert_eq!((&*class.name, class.superclass.as_deref()), ("shop/PriceTest", Some("java/lang/Object")));
    assert!(class.methods.iter().any(|method| &**method == "ends"), "{:?}", class.methods);
}

/// Returns a class with all that is read of one.
fn whole() -> Vec<u8> {
    let class = Class::default().string("/proc").calls("java/lang/Runtime", "halt").lambda("org/junit/rules/TestRule");
    class.implements("org/junit/rules/TestRule").expecting("org/junit/Test", "expected", "java/lang/Error").bytes()
}

#[test]
fn damaged_class_files_are_errors_or_other_ones() {
    let whole = whole();
    assert_eq!(findings([whole.as_slice()], &BTreeSet::new()).unwrap().len(), 5);
    for length in 0..whole.len() {
        assert!(findings([&whole[..length]], &BTreeSet::new()).is_err(), "{length} bytes");
    }
    for at in 0..whole.len() {
        for value in [0, 1, b'@', b'[', 0x7f, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            let _ = findings([changed.as_slice()], &BTreeSet::new());
        }
    }
}

#[test]
fn annotations_in_each_other_end() {
    let mut class = Class::default();
    let [name, attribute, annotation] =
        ["m", "RuntimeVisibleAnnotations", "La;"].map(|text| class.text(text).to_be_bytes());
    let value = [&[0, 1][..], &annotation, &[0, 1], &name, &b"[\0\x01".repeat(100_000)].concat();
    let length = u32::try_from(value.len()).unwrap().to_be_bytes();
    class.methods.push((u16::from_be_bytes(name), [&[0, 1][..], &attribute, &length, &value].concat()));
    let error = findings([class.bytes().as_slice()], &BTreeSet::new()).unwrap_err();
    assert_eq!(error.to_string(), "not a class file: its annotations lie too deep in each other");
}

proptest::proptest! {
    /// Whatever the bytes are, an answer comes.
    #[test]
    fn any_bytes_have_an_answer(
        at in 0usize..400,
        replaced in proptest::collection::vec(proptest::num::u8::ANY, 0..24),
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
    ) {
        let mut changed = whole();
        let at = at.min(changed.len());
        changed.splice(at..(at + replaced.len()).min(changed.len()), replaced);
        for bytes in [changed, bytes] {
            let _ = findings([bytes.as_slice()], &BTreeSet::new());
        }
    }
}

#[test]
fn a_class_of_the_project_that_is_made_again_is_found() {
    let of = |name| found(Class { name: Some(name), ..Class::default() });
    assert_eq!(of("q/BTest"), [(FindingKind::Replaces, "q/BTest".to_owned())]);
    assert!(of("p/ATest").is_empty() && of("shop/ATest").is_empty());
}

#[test]
fn what_stands_around_tests_of_junit_3_is_found() {
    let of = |superclass, method: &str| !found(Class::default().extends(superclass).method(method)).is_empty();
    for (superclass, method, intercepts) in [
        ("junit/extensions/TestDecorator", "run", true),
        ("junit/extensions/TestSetup", "setUp", false),
        ("junit/framework/TestSuite", "runTest", true),
        ("junit/framework/TestSuite", "suite", false),
        ("junit/framework/TestResult", "addFailure", true),
        ("junit/framework/TestCase", "runBare", true),
        ("junit/framework/TestResult", "runProtected", true),
        ("junit/framework/TestCase", "addError", false),
        ("junit/framework/TestCase", "testOne", false),
    ] {
        assert_eq!(of(superclass, method), intercepts, "{superclass} {method}");
    }
    assert!(!found(Class::default().implements("junit/framework/Test")).is_empty());
    assert!(found(Class::default().implements("junit/framework/Protectable")).is_empty());
}
