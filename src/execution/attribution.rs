//! Tells for each method of a test file that does not compile whether it has an error of its own.
//!
//! One error keeps the whole file from compiling, so on old code every method of the file fails. Both paths use this
//! module to find the methods that would fail without the others too. It changes no outcome.

use crate::execution::run::record::CellRecord;
use crate::java::reach::{Place, TestSource};
use crate::outcome::{CompileReason, Outcome};
use crate::thread::blocking;
use crate::workspace::cells::class_of_method;

/// The first version of javac that shows uses of a name although its import failed.
const SHOWS_USES: u32 = 9;

/// A test file with errors.
pub(super) struct Erroneous<'a> {
    /// Its bytes.
    pub(super) text: &'a [u8],
    /// Binary name of its class. A method's own class may be nested in it.
    pub(super) class: &'a str,
    /// Where the compiler reported errors of this file, at most a hundred.
    pub(super) places: Vec<Place>,
    /// Major version of the development kit that compiled it.
    pub(super) jdk: u32,
}

/// Completes the records of a cell whose test file does not compile; other records stay as they are.
pub(super) async fn attribute(mut records: Vec<CellRecord>, file: Erroneous<'_>) -> std::io::Result<Vec<CellRecord>> {
    let fails = |record: &CellRecord| record.outcome == Outcome::CompileFail(CompileReason::TargetFile);
    if !records.iter().any(fails) {
        return Ok(records);
    }
    let (text, class) = (file.text.to_vec(), file.class.to_owned());
    let work = move || -> std::io::Result<Vec<CellRecord>> {
        let source = TestSource::parse(&text);
        let found = source.as_ref().map(|source| source.find(&file.places)).unwrap_or_default();
        for record in records.iter_mut().filter(|record| fails(record)) {
            let binary_name = class_of_method(&class, &record.method);
            let unqualified = binary_name.rsplit('.').next().unwrap_or(&binary_name);
            let reach = source.as_ref().map(|source| source.reach(unqualified, record.method.method()));
            record.attributed = Some(reach.is_some_and(|reach| reach.has_any(&found, file.jdk < SHOWS_USES)));
        }
        Ok(records)
    };
    blocking(work).await
}
