//! What the variants of a cell's execution say, beside each other: its times, and what keeps them from being compared.

use std::collections::BTreeMap;

use crate::literal::LiteralVerdict;
use crate::report::measurement::{MeasuredCell, Times, Variant};
use testevo_sandbox::execution::run::record::CellRecord;
use testevo_sandbox::outcome::Outcome;
use testevo_sandbox::task::Cell;

/// What came of a cell in one variant.
pub(super) struct Executed {
    pub(super) wall_ms: u64,
    pub(super) records: Vec<CellRecord>,
    /// The verdict of the paper's harness.
    pub(super) literal: Option<LiteralVerdict>,
}

/// Returns a cell's times and, where the direct path launched the methods, which passed; says what keeps the variants from
/// being compared.
pub(super) fn judged(
    cell: Cell,
    order: &[Variant],
    variants: BTreeMap<Variant, &Executed>,
    left_out: &mut Vec<String>,
) -> (MeasuredCell, Option<Vec<bool>>) {
    let records = |variant| variants.get(&variant).map_or(&[][..], |executed| executed.records.as_slice());
    let reference = records(Variant::Reference);
    for variant in [Variant::Reference, Variant::Direct, Variant::Ahead] {
        left_out.extend(faults(variant, cell, records(variant)));
        left_out.extend(differences(variant, cell, reference, records(variant)));
    }
    let literal = variants.values().filter_map(|executed| executed.literal.as_ref());
    left_out.extend(literal.flat_map(|literal| literal_differences(cell, reference, literal)));
    let direct = records(Variant::Direct);
    let unfit = direct.first().and_then(|record| record.measured.unfit.clone());
    let launched = unfit.is_none() && direct.iter().any(|record| record.measured.launch_ms.is_some());
    let passed = launched.then(|| direct.iter().map(|record| record.outcome == Outcome::Pass).collect());
    let times = variants
        .iter()
        .map(|(variant, executed)| (*variant, of_records(executed.wall_ms, &executed.records)))
        .collect();
    (MeasuredCell { cell, order: order.to_vec(), times, floor_ms: None, unfit }, passed)
}

/// Returns where the time of a cell went by what its records say.
fn of_records(wall_ms: u64, records: &[CellRecord]) -> Times {
    let measured = || records.iter().map(|record| &record.measured);
    let first = measured().next();
    Times {
        wall_ms,
        prepare_ms: first.and_then(|measured| measured.prepare_ms).unwrap_or(0),
        compile_ms: first.and_then(|measured| measured.compile_ms).unwrap_or(0),
        begin_ms: measured().filter_map(|measured| measured.begin_ms).sum(),
        container_ms: measured().filter_map(|measured| measured.container_ms).sum(),
        launch_ms: measured().filter_map(|measured| measured.launch_ms).sum(),
    }
}

/// Names faults of ours: what they took is no time of anything.
fn faults(variant: Variant, cell: Cell, records: &[CellRecord]) -> Vec<String> {
    let faulty = records.iter().filter(|record| matches!(record.outcome, Outcome::InfraFail(_)));
    faulty
        .map(|record| {
            format!("{} {}: {}, {}: {}", cell.name(), record.method, variant.name(), record.outcome, record.detail)
        })
        .collect()
}

/// Names methods with another outcome than on the reference path.
fn differences(variant: Variant, cell: Cell, reference: &[CellRecord], found: &[CellRecord]) -> Vec<String> {
    let outcomes: BTreeMap<_, _> = found.iter().map(|record| (&record.method, record.outcome)).collect();
    let differing = reference.iter().filter(|record| outcomes.get(&record.method) != Some(&record.outcome));
    differing
        .map(|record| {
            let got = outcomes.get(&record.method).map_or_else(|| "nothing".to_owned(), Outcome::to_string);
            format!("{} {}: {} {got}, reference {}", cell.name(), record.method, variant.name(), record.outcome)
        })
        .collect()
}

/// Names methods of which the paper's harness says something else than the reference path, as far as exit statuses tell.
fn literal_differences(cell: Cell, reference: &[CellRecord], literal: &LiteralVerdict) -> Vec<String> {
    let compiles = |outcome| !matches!(outcome, Outcome::CompileFail(_));
    let differing = reference.iter().zip(&literal.passed).filter(|(record, passed)| {
        (record.outcome == Outcome::Pass) != **passed || compiles(record.outcome) != literal.compiled
    });
    differing
        .map(|(record, passed)| {
            let said = match (literal.compiled, passed) {
                (false, _) => "does not compile",
                (true, true) => "passes",
                (true, false) => "fails",
            };
            format!("{} {}: literal {said}, reference {}", cell.name(), record.method, record.outcome)
        })
        .collect()
}
