//! Requests to the warm compiler and its answers as bytes. Protocol: `images/compiler/README.md`.

use std::collections::BTreeMap;

use super::{CompileAnswer, CompileRequest, Diagnostic, Files, Texts};
use crate::execution::build::recording::OUTPUT_OPTIONS;

/// Replaces paths in an argument that is a path, a list of paths, or `module=` and a list of paths.
pub(super) fn replace(argument: &str, replaced: &BTreeMap<&str, String>) -> String {
    let (start, list) = match argument.split_once('=') {
        Some((start, list)) if !start.contains('/') => (format!("{start}="), list),
        _ => (String::new(), argument),
    };
    let paths = list.split(':').map(|path| replaced.get(path).map_or(path, String::as_str));
    start + &paths.collect::<Vec<_>>().join(":")
}

/// Returns a request, and how many bytes it has before it.
pub(super) fn encode(
    request: &CompileRequest,
    (varied, texts): Texts<'_>,
    replaced: &BTreeMap<&str, String>,
) -> Vec<u8> {
    let mut payload = Vec::new();
    let count = |payload: &mut Vec<u8>, count: usize| {
        payload.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
    };
    let bytes = |payload: &mut Vec<u8>, bytes: &[u8]| {
        count(payload, bytes.len());
        payload.extend_from_slice(bytes);
    };
    count(&mut payload, request.arguments.len());
    let mut before = "";
    for argument in &request.arguments {
        let written = OUTPUT_OPTIONS.contains(&before);
        let argument_sent = if written { argument.clone() } else { replace(argument, replaced) };
        bytes(&mut payload, argument_sent.as_bytes());
        before = argument;
    }
    bytes(&mut payload, request.output.as_bytes());
    count(&mut payload, request.directories.len());
    for directory in &request.directories {
        bytes(&mut payload, directory.as_bytes());
    }
    count(&mut payload, request.files.len());
    for (path, content) in &request.files {
        bytes(&mut payload, path.as_bytes());
        bytes(&mut payload, content);
    }
    count(&mut payload, request.sources.len());
    for source in &request.sources {
        bytes(&mut payload, source.as_bytes());
    }
    bytes(&mut payload, varied.as_bytes());
    count(&mut payload, texts.len());
    for text in texts {
        bytes(&mut payload, text.as_bytes());
    }
    let mut message = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    message.append(&mut payload);
    message
}

/// Returns the decoded answer, or `None` if it is malformed.
pub(super) fn decode(answer: &[u8]) -> Option<CompileAnswer> {
    let mut rest = Rest(answer);
    let status = rest.byte()?;
    let trouble = rest.text()?;
    let mut errors = Vec::new();
    for _ in 0..rest.number()? {
        let file = rest.text()?;
        let line = rest.long()?;
        let column = rest.long()?;
        let (code, message) = (rest.text()?, rest.text()?);
        errors.push(Diagnostic { file: (!file.is_empty()).then_some(file), line, column, code, message });
    }
    let _others = rest.number()?;
    let (classes, generated) = (rest.files()?, rest.files()?);
    if !classes.iter().all(|(path, _)| is_plain(path)) {
        return None;
    }
    match status {
        0 => Some(CompileAnswer::Compiled { classes, generated }),
        1 => Some(CompileAnswer::Errors(errors)),
        _ => Some(CompileAnswer::Broken(trouble)),
    }
}

/// Tells whether a path is relative and stays below its directory.
fn is_plain(path: &str) -> bool {
    path.len() < 4096 && !path.contains('\0') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn long(&mut self) -> Option<i64> {
        let bytes = self.take(8)?;
        Some(i64::from_be_bytes(bytes.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    fn files(&mut self) -> Option<Files> {
        let mut files = Vec::new();
        for _ in 0..self.number()? {
            files.push((self.text()?, self.bytes()?.to_vec()));
        }
        Some(files)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}
