//! Requests to the warm compiler.

use std::collections::BTreeSet;

use crate::execution::build::compiler::{CompileRequest, Files};
use crate::execution::build::masked::{MaskedRevision, Reach};
use crate::execution::build::recording::CompilerCall;
use crate::execution::container::places;
use crate::workspace::class_file::ClassFacts;
use crate::workspace::java_source::package_of;

/// A source of which no annotation processor can make anything.
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
        patience: None,
    }
}

/// Returns the request that compiles `text` in the masked file's place with its dependents; `None` if only Maven can
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

/// Returns the request that proves the compiler for a revision without the file. It compiles a source in the file's
/// place, or all other sources. `None` if no source can replace the file.
pub(super) fn other_request(masked: &MaskedRevision, reach: Reach) -> std::io::Result<Option<CompileRequest>> {
    let Some(shown) = masked.shown()? else { return Ok(None) };
    let files = match reach {
        Reach::Dependents => vec![shown],
        Reach::Part => masked.part()?,
    };
    request(masked, files).map(Some)
}

/// Returns the files that annotation processors made of a request's sources, by absolute path: generated files, and
/// classes that name none of the sources.
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
        patience: None,
    })
}

/// Returns a call's arguments, changed for sources that patch a module: classes that are compiled already patch it
/// instead.
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
mod tests;
