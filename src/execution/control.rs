//! Controls: launches on changed new code, where a test that checks the code must change its result, or must not. They
//! trust nothing that a JVM reports. Changes are made in class files on the host, and results of a launch are compared
//! with those of earlier launches. Source: docs/security.md.

pub mod classes;
pub mod hollow;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::classes::{ControlClasses, FocalExtent};
use self::hollow::BodyForm;
use crate::artifact::key::key;
use crate::digest::Digest;
use crate::execution::build::built::Built;
use crate::execution::build::compiled_tree::CompiledTree;
use crate::execution::build::compiler::Files;
use crate::execution::build::merged::OpenTree;
use crate::execution::build::prepared::RevisionInput;
use crate::execution::container::RepositoryImage;
use crate::execution::executor::Executor;
use crate::execution::fault::NoAnswer;
use crate::execution::launch::coverage::{Covering, Lines, SourceFile};
use crate::execution::launch::{LaunchOptions, MethodLaunch};
use crate::execution::mutation::launches::{MUTANT_SECONDS, limited};
use crate::execution::order::shuffle;
use crate::execution::run::logs::{CellLogs, method_name};
use crate::execution::run::record::CellRecord;
use crate::outcome::{InfraReason, Outcome};
use crate::submission::mentions::Finding;
use crate::task::MethodId;
use crate::thread::blocking;

/// A way to change new code or the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Focal methods throw an error with a random message. A test that still passes does not test them.
    Canary,
    /// As `Canary`, with the test method's body emptied. If this test fails, focal methods are reached without the
    /// body.
    CanaryEmptied,
    /// The classes of focal methods have the same behaviour in other bytes. A test that fails looks at bytes.
    Null,
    /// Focal methods have old code's bodies, and throw an error if old code lacks them. A test that passes tells the revisions apart by
    /// something else.
    OldBodies,
}

impl Control {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Canary, Self::CanaryEmptied, Self::Null, Self::OldBodies];
}

/// What became of a test method under a control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Controlled {
    /// The control.
    pub control: Control,
    /// The outcome; `None` where the control is not applicable.
    #[serde(flatten)]
    pub outcome: Option<Outcome>,
    /// Why the control is not applicable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_applicable: Option<String>,
}

/// What a test method does with an emptied body. It shows what is reached without the body.
#[derive(Clone, Debug)]
pub struct Emptied {
    /// The body.
    pub form: BodyForm,
    /// Its outcome on new code.
    pub outcome: Outcome,
    /// The lines that it covers; `None` if it does not pass, or coverage was not measured.
    pub lines: Option<BTreeMap<SourceFile, Lines>>,
}

/// The controls of one test method.
#[derive(Clone, Debug)]
pub struct MethodControls {
    /// The method.
    pub method: MethodId,
    /// What became of it under each control.
    pub controls: Vec<Controlled>,
    /// The result with an emptied body, if focal methods are reached without the body.
    pub emptied: Option<Emptied>,
    /// What the classes of its test file mention.
    pub findings: Vec<Finding>,
}

impl MethodControls {
    fn outcome(&self, control: Control) -> Option<Outcome> {
        self.controls.iter().find(|one| one.control == control).and_then(|one| one.outcome)
    }

    /// Tells whether a focal method is reached without the body. Only then is the emptied method measured.
    fn is_reached_without_body(&self) -> bool {
        let failed = |control| self.outcome(control).is_some_and(|outcome| matches!(outcome, Outcome::ExecFail(_)));
        failed(Control::Canary) && failed(Control::CanaryEmptied)
    }
}

/// Old code's classes.
#[derive(Clone, Debug)]
pub struct OldCode {
    /// Old code's compiled tree, or why there is none.
    pub tree: Result<Arc<CompiledTree>, NoAnswer>,
}

impl OldCode {
    /// Tells whether a fault of ours hides it.
    pub(super) fn is_lost(&self) -> bool {
        self.tree.as_ref().is_err_and(NoAnswer::may_pass)
    }
}

/// The methods to launch under controls.
#[derive(Clone, Debug)]
pub struct ControlRequest<'a> {
    /// Methods that passed before and are not launched now, with the duration of their JVM in milliseconds.
    pub passing: Vec<(MethodId, Option<u64>)>,
    /// The focal methods of each test method.
    pub extents: &'a BTreeMap<MethodId, Vec<FocalExtent>>,
    /// The test file, relative to the tree.
    pub test_file: &'a str,
    /// The source files of all focal methods of the task.
    pub sources: &'a [SourceFile],
    /// Source files whose coverage is compared; none without coverage.
    pub files: &'a [SourceFile],
    /// Old code's classes.
    pub old: &'a OldCode,
    /// Decides messages, bytes and the order of launches.
    pub seed: u64,
}

impl ControlRequest<'_> {
    /// Returns these methods, and those that pass in the records of the present launch.
    pub fn passing_with(&self, records: &[CellRecord]) -> Vec<(MethodId, Option<u64>)> {
        let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
        let passed = passed.map(|record| (record.method.clone(), record.measured.launch_ms));
        self.passing.iter().cloned().chain(passed).collect()
    }
}

impl Executor {
    /// Launches methods that pass under every control.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub async fn control(
        &self,
        (image, built): (&RepositoryImage, &Built),
        (class, logs): (&str, &CellLogs),
        request: &ControlRequest<'_>,
        records: &[CellRecord],
    ) -> std::io::Result<Vec<MethodControls>> {
        let passing = request.passing_with(records);
        if passing.is_empty() {
            return Ok(Vec::new());
        }
        let tree = ControlTree::open(built, class, request.sources, request.seed).await?;
        let findings = tree.findings(request.test_file).await?;
        let mut controlled = Vec::new();
        for (method, launch_ms) in passing {
            let extents = request.extents.get(&method).map_or(&[][..], Vec::as_slice);
            let focal = (extents, request.old);
            let controls = tree.launch((self, image), (&method, launch_ms), focal, logs).await?;
            let mut one = MethodControls { method, controls, emptied: None, findings: findings.clone() };
            if one.is_reached_without_body() {
                let launched = (self, image);
                one.emptied = tree.launch_emptied(launched, (&one.method, launch_ms), request.files, logs).await?;
            }
            controlled.push(one);
        }
        Ok(controlled)
    }

    async fn measure_emptied(
        &self,
        (image, built): (&RepositoryImage, &Built),
        (class, method): (&str, &MethodId),
        (form, launch_ms): (BodyForm, Option<u64>),
        files: &[SourceFile],
        logs: &CellLogs,
    ) -> std::io::Result<Emptied> {
        let name = format!("emptied-{}", method_name(class, method));
        let options = LaunchOptions::default();
        let launch = MethodLaunch { class, method, options: &options, name: &name };
        // A body that has lost its calls may wait for what never comes.
        let outcome = limited(self, launch_ms).launch(image, built, &launch, logs).await?.outcome;
        let mut lines = None;
        if outcome == Outcome::Pass && !files.is_empty() {
            let logs = logs.below("emptied")?;
            let covering = Covering { class, files, logs: &logs };
            let covered = self.cover(image, built, &covering, std::iter::once(method)).await?;
            lines = covered.into_iter().next().and_then(|one| one.lines.ok());
        }
        Ok(Emptied { form, outcome, lines })
    }
}

/// A tree on which methods pass, with the changes of controls.
pub struct ControlTree<'a> {
    built: &'a Built,
    tree: OpenTree,
    /// Binary name of the test file's class.
    class: &'a str,
    /// The source files of all focal methods of the task.
    sources: &'a [SourceFile],
    /// Decides messages, bytes and the order of launches.
    seed: u64,
}

/// Returns the key of a method's controls, from the key of its launch, its focal methods, the sources of all of the task, and everything
/// that decides the measurement of emptied bodies. `old` is the old revision, if focal methods get its bodies. `chosen_seed`
/// is as in the key of results on mutants.
pub fn control_key(
    launch: Digest,
    (extents, sources): (&[FocalExtent], &[SourceFile]),
    old: Option<&RevisionInput>,
    measured: &impl Serialize,
    chosen_seed: Option<u64>,
) -> Digest {
    let old = old.map(|old| (&old.tree, old.module.identity()));
    key("controls", 6, &(launch, extents, sources, old, measured, MUTANT_SECONDS, chosen_seed))
}

impl<'a> ControlTree<'a> {
    /// Opens a built tree.
    ///
    /// # Errors
    /// I/O errors of reading its archives.
    pub async fn open(built: &'a Built, class: &'a str, sources: &'a [SourceFile], seed: u64) -> std::io::Result<Self> {
        let tree = OpenTree::of(built).await.map_err(std::io::Error::from)?;
        Ok(Self { built, tree, class, sources, seed })
    }

    /// Launches a method under every control, in an order that the seed decides.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub async fn launch(
        &self,
        (executor, image): (&Executor, &RepositoryImage),
        (method, launch_ms): (&MethodId, Option<u64>),
        focal: (&[FocalExtent], &OldCode),
        logs: &CellLogs,
    ) -> std::io::Result<Vec<Controlled>> {
        let classes = self.classes(method, focal, self.seed).await?;
        let mut order: Vec<(usize, Control)> = Control::ALL.into_iter().enumerate().collect();
        shuffle(&mut order, self.seed);
        let mut controlled = Vec::new();
        for (place, (_, control)) in order.into_iter().enumerate() {
            let (outcome, not_applicable) = match classes.files(control) {
                Ok(files) => {
                    let name = format!("control-{}-{}", place + 1, method_name(self.class, method));
                    let name = (name.as_str(), launch_ms);
                    let mut outcome = self.launch_with((executor, image), method, files, name, logs).await?;
                    // One result that speaks against the test may be chance. It counts only if it comes twice.
                    let is_against = match control {
                        Control::Null => matches!(outcome, Outcome::ExecFail(_)),
                        Control::OldBodies => outcome == Outcome::Pass,
                        Control::Canary | Control::CanaryEmptied => false,
                    };
                    if is_against && let Ok(files) = self.classes(method, focal, !self.seed).await?.files(control) {
                        let again = format!("{}-again", name.0);
                        let again = (again.as_str(), launch_ms);
                        outcome = self.launch_with((executor, image), method, files, again, logs).await?;
                    }
                    (Some(outcome), None)
                }
                Err(reason) => {
                    let is_lost = control == Control::OldBodies && focal.1.is_lost();
                    (is_lost.then_some(Outcome::InfraFail(InfraReason::Build)), Some(reason))
                }
            };
            controlled.push(Controlled { control, outcome, not_applicable });
        }
        controlled.sort_by_key(|one| one.control);
        Ok(controlled)
    }

    /// Makes the class files of a method's controls.
    async fn classes(
        &self,
        method: &MethodId,
        (extents, old): (&[FocalExtent], &OldCode),
        seed: u64,
    ) -> std::io::Result<ControlClasses> {
        let (tree, class_path) = (self.tree.clone(), self.built.class_path.clone());
        let (class, wanted) = (self.class.to_owned(), method.clone());
        let (extents, sources, old) = (extents.to_vec(), self.sources.to_vec(), old.clone());
        let focal = move || ControlClasses::of(&tree, &class_path, (&class, &wanted), (&extents, &sources), &old, seed);
        blocking(focal).await
    }

    /// Returns what the classes of the test file mention.
    async fn findings(&self, test_file: &str) -> std::io::Result<Vec<Finding>> {
        let (tree, class_path) = (self.tree.clone(), self.built.class_path.clone());
        let (class, file) = (self.class.to_owned(), test_file.rsplit('/').next().unwrap_or(test_file).to_owned());
        blocking(move || classes::findings_of(&tree, &class_path, (&class, &file))).await
    }

    /// Launches a method with each form of an empty body, until one passes or a fault ends one. Returns the last one, or the first
    /// if none passes; `None` if no form fits.
    async fn launch_emptied(
        &self,
        (executor, image): (&Executor, &RepositoryImage),
        (method, launch_ms): (&MethodId, Option<u64>),
        files: &[SourceFile],
        logs: &CellLogs,
    ) -> std::io::Result<Option<Emptied>> {
        let mut first = None;
        for (number, form) in self.forms(method).await?.into_iter().enumerate() {
            let Some(built) = self.emptied(executor, method, form).await? else { continue };
            let logs = logs.below(&format!("form-{}", number + 1))?;
            let on = (image, &built);
            let one = executor.measure_emptied(on, (self.class, method), (form, launch_ms), files, &logs).await?;
            if matches!(one.outcome, Outcome::Pass | Outcome::InfraFail(_)) {
                return Ok(Some(one));
            }
            first = first.or(Some(one));
        }
        Ok(first)
    }

    /// Returns the forms of an empty body that a method may have.
    async fn forms(&self, method: &MethodId) -> std::io::Result<Vec<BodyForm>> {
        let (tree, class_path) = (self.tree.clone(), self.built.class_path.clone());
        let (class, wanted) = (self.class.to_owned(), method.clone());
        blocking(move || hollow::forms(&tree, &class_path, (&class, &wanted))).await
    }

    /// Returns the tree with a form of the test method's body; `None` if the method can't have it.
    ///
    /// # Errors
    /// I/O errors of writing temporary files.
    pub async fn emptied(
        &self,
        executor: &Executor,
        method: &MethodId,
        form: BodyForm,
    ) -> std::io::Result<Option<Built>> {
        let (tree, class_path) = (self.tree.clone(), self.built.class_path.clone());
        let (class, wanted) = (self.class.to_owned(), method.clone());
        let files = blocking(move || hollow::hollow(&tree, &class_path, (&class, &wanted), form)).await?;
        match files {
            Ok(files) => self.tree.with(self.built, files, &executor.temporary).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    async fn launch_with(
        &self,
        (executor, image): (&Executor, &RepositoryImage),
        method: &MethodId,
        files: Files,
        (name, launch_ms): (&str, Option<u64>),
        logs: &CellLogs,
    ) -> std::io::Result<Outcome> {
        let built = self.tree.with(self.built, files, &executor.temporary).await?;
        let options = LaunchOptions::default();
        let launch = MethodLaunch { class: self.class, method, options: &options, name };
        Ok(limited(executor, launch_ms).launch(image, &built, &launch, logs).await?.outcome)
    }
}
