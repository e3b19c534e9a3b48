//! Requests to the warm compiler.

use std::collections::BTreeSet;

use crate::execution::build::compiler::{CompileRequest, Files};
use crate::execution::build::masked::{MaskedRevision, Reach};
use crate::execution::build::recording::CompilerCall;
use crate::execution::container::places;
use crate::workspace::class_file::ClassFacts;
use crate::workspace::java_source::package_of;

/// A source that no annotation processor can make anything of.
pub(super) const NOTHING: &[u8] = b"class TestevoNothing {}\n";

/// Returns the request that compiles nothing but [`NOTHING`].
pub(super) fn nothing_request(masked: &MaskedRevision) -> CompileRequest {
    let call = &masked.call;
    let root = call.source_roots.first().map_or(places::PROJECT, String::as_str);
    let path = format!("{root}/TestevoNothing.java");
    CompileRequest {
        arguments: call.arguments.clone(),
        inputs: masked.inputs.clone(),
        output: call.output.clone(),
        directories: call.generated_sources.iter().chain(&call.source_roots).cloned().collect(),
        files: vec![(path.clone(), NOTHING.to_vec())],
        sources: vec![path],
    }
}

/// Returns the request that compiles `text` in the masked file's place with its dependents; `None` where only Maven can
/// compile the dependents.
pub(super) fn test_request(
    masked: &MaskedRevision,
    text: Vec<u8>,
    reach: Reach,
) -> std::io::Result<Option<CompileRequest>> {
    let Some(dependents) = masked.dependents(&text)? else { return Ok(None) };
    let mut files = match reach {
        Reach::Dependents => dependents,
        Reach::Part => masked.part()?,
    };
    files.push((masked.path(), text));
    request(masked, files).map(Some)
}

/// Returns the request that proves the compiler for a revision without the file: a source in the file's place, or all
/// others. `None` where no source can replace the file.
pub(super) fn other_request(masked: &MaskedRevision, reach: Reach) -> std::io::Result<Option<CompileRequest>> {
    let Some(shown) = masked.shown()? else { return Ok(None) };
    let files = match reach {
        Reach::Dependents => vec![shown],
        Reach::Part => masked.part()?,
    };
    request(masked, files).map(Some)
}

/// Returns the files that annotation processors made of a request's sources, by absolute path: files that javac did not
/// make itself, and classes that name none of the sources.
pub(super) fn made_by_processors(request: &CompileRequest, classes: &Files, generated: &Files) -> Files {
    let sources: BTreeSet<(String, &str)> = request
        .files
        .iter()
        .map(|(path, text)| (package_of(text).replace('.', "/"), path.rsplit('/').next().unwrap_or(path)))
        .collect();
    let foreign = classes.iter().filter(|(_, class)| match ClassFacts::read(class) {
        Ok(facts) => {
            let source = facts.source_file.as_deref().map(|source| (facts.package().to_owned(), source));
            source.is_none_or(|source| !sources.contains(&source))
        }
        Err(_) => true,
    });
    let foreign = foreign.map(|(path, class)| (format!("{}/{path}", request.output), class.clone()));
    generated.iter().cloned().chain(foreign).collect()
}

/// Returns the request that compiles these sources.
fn request(masked: &MaskedRevision, mut files: Files) -> std::io::Result<CompileRequest> {
    let call = &masked.call;
    let mut sources: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    masked.ordered(&mut sources);
    files.extend(masked.settings()?);
    let mut directories: Vec<String> = call.generated_sources.iter().chain(&call.source_roots).cloned().collect();
    directories.dedup();
    Ok(CompileRequest {
        arguments: patched(call),
        inputs: masked.inputs.clone(),
        output: call.output.clone(),
        directories,
        files,
        sources,
    })
}

/// Returns a call's arguments such that sources that patch a module, and are compiled already, patch it by their classes.
fn patched(call: &CompilerCall) -> Vec<String> {
    let mut arguments = call.arguments.clone();
    let of_patch = |at: usize| at > 0 && call.arguments[at - 1] == "--patch-module";
    for (at, argument) in arguments.iter_mut().enumerate() {
        let list = if of_patch(at) { argument.split_once('=').map(|(_, list)| list) } else { None };
        let by_sources = |list: &str| list.split(':').any(|part| call.source_roots.iter().any(|root| root == part));
        if list.is_some_and(by_sources) {
            *argument = format!("{argument}:{}", call.output);
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::build::masked::tests::masked;
    use crate::workspace::class_file::sample;

    #[test]
    fn what_is_asked_for_reaches_as_far_as_it_must() {
        let files: [(&str, &[u8]); 5] = [
            ("src/ATest.java", b"class ATest {}"),
            ("src/Alone.java", b"class Alone {}"),
            ("src/Middle.java", b"class Middle extends ATest {}"),
            ("src/lombok.config", b"lombok.x = 1"),
            ("lombok.config", b"lombok.y = 2"),
        ];
        let (_directory, masked) = masked(&files, "src/ATest.java");
        let masked = masked.unwrap();
        let text = b"class ATest { int x; }".to_vec();
        for (reach, expected) in
            [(Reach::Dependents, &["ATest", "Middle"][..]), (Reach::Part, &["ATest", "Alone", "Middle"])]
        {
            let request = test_request(&masked, text.clone(), reach).unwrap().unwrap();
            let expected: Vec<String> =
                expected.iter().map(|name| format!("{}/src/{name}.java", places::PROJECT)).collect();
            let mut sources = request.sources.clone();
            sources.sort();
            assert_eq!(sources, expected, "{reach:?}");
            let mut given: Vec<&str> = request.files.iter().map(|(path, _)| path.as_str()).collect();
            given.sort();
            let settings = ["lombok.config", "src/lombok.config"].map(|path| format!("{}/{path}", places::PROJECT));
            let mut needed: Vec<&str> = expected.iter().chain(&settings).map(String::as_str).collect();
            needed.sort();
            assert_eq!(given, needed, "{reach:?}");
            let own = request.files.iter().find(|(path, _)| *path == masked.path()).unwrap();
            assert_eq!(own.1, text);
        }
    }

    #[test]
    fn what_processors_made_is_told_from_what_sources_did() {
        let request = CompileRequest {
            output: "/o".to_owned(),
            files: vec![("/s/p/A.java".to_owned(), b"package p; class A {}".to_vec())],
            ..CompileRequest::default()
        };
        let class = |name: &str, source| (format!("{name}.class"), sample(name, source));
        let own = vec![class("p/A", Some("A.java")), class("p/A$B", Some("A.java"))];
        assert!(made_by_processors(&request, &own, &Files::new()).is_empty());
        let others = [
            class("p/C", Some("C.java")),
            class("q/A", Some("A.java")),
            class("p/D", None),
            ("x.class".into(), vec![1]),
        ];
        for other in others {
            let made = made_by_processors(&request, &[&own[..], std::slice::from_ref(&other)].concat(), &Files::new());
            assert_eq!(made, [(format!("/o/{}", other.0), other.1)]);
        }
        let resource = vec![("/o/META-INF/x".to_owned(), b"x".to_vec())];
        assert_eq!(made_by_processors(&request, &own, &resource), resource);
    }
}
