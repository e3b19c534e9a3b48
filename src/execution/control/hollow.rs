//! A test method's class with a body that tests nothing: in which class the method stands, and which bodies the test may still pass
//! with.
//!
//! An empty body shows what the rest of a test does without it. Where the rest looks at what the body did, or where the method has
//! to throw or to return something, an empty body fails for a reason of no interest. The further forms leave that reason out. None
//! of them calls the project's code or an assertion, but for the constructor of the class that the annotation expects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::execution::build::compiler::Files;
use crate::execution::build::merged::OpenTree;
use crate::execution::container::places::within;
use crate::submission::mentions::EXPECTATIONS;
use crate::task::MethodId;
use crate::workspace::cells::class_of_method;
use crate::workspace::class_file::edit::{Code, MethodFacts, with_code};
use crate::workspace::class_file::{ClassContent, ClassFacts, ClassFileError};

/// The most overloads of a method that are looked at one by one.
const MOST_OVERLOADS: usize = 16;

/// The most classes that are read in search of the one that declares a method.
const MOST_CLASSES: usize = 100;

/// A body that tests nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BodyForm {
    /// It returns at once.
    #[default]
    Returns,
    /// It throws a new object of the class that the test's annotation expects.
    Throws,
    /// As `Throws`, by the constructor that takes a message.
    ThrowsMessage,
    /// It returns one dynamic test that does nothing.
    OneTest,
    /// It is the method's own code without calls: what it writes into fields, counters and properties stays. If the test's annotation
    /// expects something, the body throws it at its end.
    KeepsState,
}

/// The classes to change, and what decides the forms.
struct Target {
    /// Path and content of each class that declares the method.
    classes: Vec<(String, Vec<u8>)>,
    /// Classes of the test file, with slashes.
    own: BTreeSet<String>,
    /// The class whose objects the annotation expects.
    expected: Option<String>,
    /// Whether a method of this name returns something.
    returns: bool,
    /// Whether one returns nothing.
    is_void: bool,
}

/// Returns the forms of a method's body, in the order in which they are tried. Empty if no class in the tests' directory declares
/// the method.
pub(super) fn forms(tree: &OpenTree, class_path: &[String], test: (&str, &MethodId)) -> std::io::Result<Vec<BodyForm>> {
    Ok(match Target::find(tree, class_path, test)? {
        None => Vec::new(),
        Some(target) if target.expected.is_some() => {
            vec![BodyForm::Throws, BodyForm::ThrowsMessage, BodyForm::KeepsState]
        }
        Some(target) => {
            let first = if target.returns { BodyForm::OneTest } else { BodyForm::Returns };
            [first].into_iter().chain(target.is_void.then_some(BodyForm::KeepsState)).collect()
        }
    })
}

/// Returns the classes that declare a test method, with a form of its body, or why there are none.
pub(super) fn hollow(
    tree: &OpenTree,
    class_path: &[String],
    (class, method): (&str, &MethodId),
    form: BodyForm,
) -> std::io::Result<Result<Files, String>> {
    let Some(Target { classes, own, expected, .. }) = Target::find(tree, class_path, (class, method))? else {
        return Ok(Err(format!("no class of `{class}` declares the method")));
    };
    let expected = expected.as_deref();
    let code = |descriptor: &str| {
        let returns = !descriptor.ends_with(")V");
        match (form, expected) {
            (BodyForm::OneTest, _) if returns => Code::OneTest,
            (BodyForm::Throws, Some(class)) => Code::ThrowsNew { class, with_message: false },
            (BodyForm::ThrowsMessage, Some(class)) => Code::ThrowsNew { class, with_message: true },
            (BodyForm::KeepsState, _) if !returns => Code::KeepsState { own: &own, throws: expected },
            _ => Code::Returns,
        }
    };
    let mut files = Files::new();
    for (path, bytes) in &classes {
        match changed(bytes, method.method(), code) {
            Ok(Some(content)) => files.push((path.clone(), content)),
            Ok(None) => {}
            Err(error) => return Ok(Err(format!("`{path}`: {error}"))),
        }
    }
    Ok(if files.is_empty() { Err(format!("`{class}` does not declare the method")) } else { Ok(files) })
}

/// Returns a class with other code in the methods of a name that may be the test. An overload that can't have its code returns at once,
/// because it need not be a test; one of them must have it.
fn changed<'c>(bytes: &[u8], name: &str, code: impl Fn(&str) -> Code<'c>) -> Result<Option<Vec<u8>>, ClassFileError> {
    let (mut possible, mut refused) = (BTreeSet::new(), None);
    let chosen = descriptors(bytes, name)?;
    for descriptor in chosen.iter().take(MOST_OVERLOADS).cloned() {
        let is_it = |facts: &MethodFacts<'_>| facts.name == name && facts.descriptor == descriptor;
        match with_code(bytes, |facts| is_it(facts).then(|| code(&facts.descriptor))) {
            Ok(_) => _ = possible.insert(descriptor),
            Err(error) => refused = Some(error),
        }
    }
    if let Some(refused) = refused.filter(|_| possible.is_empty()) {
        return Err(refused);
    }
    let code = |facts: &MethodFacts<'_>| match possible.contains(&*facts.descriptor) {
        true => code(&facts.descriptor),
        false => Code::Returns,
    };
    with_code(bytes, |facts| (facts.name == name && chosen.contains(&*facts.descriptor)).then(|| code(facts)))
}

/// Annotations by which a launcher takes a method for a test.
const TESTS: [&str; 7] = [
    "org/junit/Test",
    "org/junit/jupiter/api/RepeatedTest",
    "org/junit/jupiter/api/Test",
    "org/junit/jupiter/api/TestFactory",
    "org/junit/jupiter/api/TestTemplate",
    "org/junit/jupiter/params/ParameterizedTest",
    "org/testng/annotations/Test",
];

/// Returns the descriptors of a class's methods of a name, those without code left out. If some of them are annotated as tests, these
/// alone: another method of the name may be a helper that the test can't do without. If none is, any may be one: tests of JUnit 3
/// have no annotation, and projects may have their own.
fn descriptors(bytes: &[u8], name: &str) -> Result<BTreeSet<String>, ClassFileError> {
    let content = ClassContent::read(bytes)?;
    let is_test = |descriptor: &String| {
        let of_method = content.marks.iter().filter(|mark| *mark.method == *name && *mark.descriptor == **descriptor);
        of_method.into_iter().any(|mark| TESTS.contains(&&*mark.annotation))
    };
    let all = all_descriptors(bytes, name)?;
    let tests: BTreeSet<String> = all.iter().filter(|descriptor| is_test(descriptor)).cloned().collect();
    Ok(if tests.is_empty() { all } else { tests })
}

fn all_descriptors(bytes: &[u8], name: &str) -> Result<BTreeSet<String>, ClassFileError> {
    let mut descriptors = BTreeSet::new();
    // Nothing is chosen: the facts alone are of interest.
    with_code(bytes, |facts| {
        if facts.name == name {
            descriptors.insert(facts.descriptor.to_string());
        }
        None
    })?;
    Ok(descriptors)
}

impl Target {
    /// Finds the classes that declare a method: its own class, the nearest superclass or interface, or else those nested in its
    /// class, which run where the class has no such method.
    fn find(
        tree: &OpenTree,
        class_path: &[String],
        (class, method): (&str, &MethodId),
    ) -> std::io::Result<Option<Self>> {
        let Some(directory) = class_path.first().and_then(|directory| within(directory)) else { return Ok(None) };
        let path = |class: &str| format!("{directory}/{class}.class");
        let class = class_of_method(class, method).replace('.', "/");
        let read = |class: &str| tree.read(&path(class)).map_err(std::io::Error::from);
        let (mut left, mut seen) = (VecDeque::from([class.clone()]), BTreeSet::new());
        let mut classes = Vec::new();
        while let Some(next) = left.pop_front().filter(|_| seen.len() < MOST_CLASSES) {
            let Some(bytes) = read(&next)?.filter(|_| seen.insert(next.clone())) else { continue };
            let Ok(content) = ClassContent::read(&bytes) else { continue };
            if content.methods.iter().any(|name| **name == *method.method()) {
                classes.push((path(&next), bytes));
                break;
            }
            // A superclass's method comes before an interface's.
            left.extend(content.interfaces.iter().map(|name| name.to_string()));
            if let Some(superclass) = content.superclass {
                left.push_front(superclass.to_string());
            }
        }
        let of_file = of_file(tree, &directory, (&class, &path(&class)))?;
        if classes.is_empty() {
            let nested = format!("{class}$");
            for (_, (path, bytes)) in of_file.iter().filter(|(name, _)| name.starts_with(&nested)) {
                let content = ClassContent::read(bytes);
                if content.is_ok_and(|content| content.methods.iter().any(|name| **name == *method.method())) {
                    classes.push((path.clone(), bytes.clone()));
                }
            }
        }
        let (mut expected, mut returns, mut is_void) = (None, false, false);
        for (_, bytes) in &classes {
            if let Ok(content) = ClassContent::read(bytes) {
                let expects = content.annotated.into_iter().find(|one| {
                    one.method.as_deref() == Some(method.method())
                        && EXPECTATIONS.contains(&(&*one.annotation, &*one.element))
                });
                expected = expected.or(expects.map(|one| one.class.to_string()));
            }
            let found = descriptors(bytes, method.method()).unwrap_or_default();
            returns |= found.iter().any(|descriptor| !descriptor.ends_with(")V"));
            is_void |= found.iter().any(|descriptor| descriptor.ends_with(")V"));
        }
        let own = of_file.into_keys().chain([class]).collect();
        Ok((!classes.is_empty()).then_some(Self { classes, own, expected, returns, is_void }))
    }
}

/// Returns the classes of a class's source file, by name with slashes: path and content. None if the source file is unknown.
fn of_file(
    tree: &OpenTree,
    tests: &str,
    (class, path): (&str, &str),
) -> std::io::Result<BTreeMap<String, (String, Vec<u8>)>> {
    let source = tree.read(path).map_err(std::io::Error::from)?.and_then(|bytes| ClassFacts::read(&bytes).ok());
    let Some(source) = source.and_then(|facts| facts.source_file) else { return Ok(BTreeMap::new()) };
    let package = class.rsplit_once('/').map_or("", |(package, _)| package);
    let directory = if package.is_empty() { tests.to_owned() } else { format!("{tests}/{package}") };
    let mut found = BTreeMap::new();
    for path in tree.classes_of(&directory, package, &source).map_err(std::io::Error::from)?.unwrap_or_default() {
        let Some(bytes) = tree.read(&path).map_err(std::io::Error::from)? else { continue };
        if let Ok(facts) = ClassFacts::read(&bytes) {
            found.insert(facts.name, (path, bytes));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::container::places::PROJECT;
    use crate::execution::scripted;

    /// What `javac --release 8 -g:source` of JDK 17 makes of this, without JUnit's type:
    ///
    /// ```java
    /// package shop;
    ///
    /// class PriceTest extends Between implements Checks {
    ///     boolean ran;
    ///     void own() { ran = true; }
    ///     void idle() { new Object().hashCode(); }
    ///     @org.junit.Test(expected = IllegalStateException.class)
    ///     public void throwing() { throw new IllegalStateException(); }
    ///     Iterable<Object> factory() { return null; }
    ///     class Inner {
    ///         void nested() {}
    ///     }
    /// }
    ///
    /// class Between implements Far {
    ///     void between() {}
    /// }
    ///
    /// interface Checks {
    ///     default void checked() {}
    /// }
    ///
    /// interface Far {
    ///     default void far() {}
    /// }
    /// ```
    const CLASSES: [(&str, &[u8]); 5] = [
        ("t/shop/PriceTest.class", include_bytes!("hollow/PriceTest.class")),
        ("t/shop/PriceTest$Inner.class", include_bytes!("hollow/PriceTest$Inner.class")),
        ("t/shop/Between.class", include_bytes!("hollow/Between.class")),
        ("t/shop/Checks.class", include_bytes!("hollow/Checks.class")),
        ("t/shop/Far.class", include_bytes!("hollow/Far.class")),
    ];

    #[tokio::test]
    async fn a_method_has_the_forms_that_its_test_may_pass_with() {
        use BodyForm::*;
        let directory = tempfile::tempdir().unwrap();
        let tree = scripted::open_tree(directory.path(), CLASSES.into_iter()).await;
        let class_path = [format!("{PROJECT}/t"), "/elsewhere/junit.jar".to_owned()];
        // The method, its forms, the class that is changed, and the forms that the method can have.
        for (method, expected, class, possible) in [
            ("own", &[Returns, KeepsState][..], "PriceTest", &[Returns, KeepsState][..]),
            ("idle", &[Returns, KeepsState], "PriceTest", &[Returns]),
            ("throwing", &[Throws, ThrowsMessage, KeepsState], "PriceTest", &[Throws, ThrowsMessage]),
            ("factory", &[OneTest], "PriceTest", &[OneTest]),
            ("between", &[Returns, KeepsState], "Between", &[Returns]),
            ("checked", &[Returns, KeepsState], "Checks", &[Returns]),
            ("far", &[Returns, KeepsState], "Far", &[Returns]),
            ("nested", &[Returns, KeepsState], "PriceTest$Inner", &[Returns]),
            ("absent", &[], "", &[]),
        ] {
            let id = format!("shop.PriceTest#{method}").parse().unwrap();
            let test = ("shop.PriceTest", &id);
            assert_eq!(forms(&tree, &class_path, test).unwrap(), expected, "{method}");
            for form in expected {
                let files = hollow(&tree, &class_path, test, *form).unwrap();
                assert_eq!(files.is_ok(), possible.contains(form), "{method} {form:?}: {files:?}");
                let Ok(files) = files else { continue };
                let [(path, content)] = &files[..] else { panic!("{method} {form:?}: {files:?}") };
                assert_eq!(*path, format!("t/shop/{class}.class"));
                let before = CLASSES.iter().find(|(name, _)| name == path).unwrap().1;
                assert!(content != before && ClassFacts::read(content) == ClassFacts::read(before));
            }
        }
        let id = "shop.PriceTest#absent".parse().unwrap();
        assert!(hollow(&tree, &class_path, ("shop.PriceTest", &id), Returns).unwrap().is_err());
    }
}
