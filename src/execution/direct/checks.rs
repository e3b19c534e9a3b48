//! Checks that a file may be compiled apart from its build. The warm compiler must make the build's own classes of the
//! revision's own text. Annotation processors must make nothing of the new text.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::Direct;
use super::requests::{NOTHING, made_by_processors, nothing_request, other_request, test_request};
use crate::execution::build::compiler::{CompileAnswer, Files, patience};
use crate::execution::build::masked::{MaskedRevision, Proof, Reach};
use crate::execution::build::prepared::PreparedError;
use crate::execution::container::RepositoryImage;
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, NoAnswer};
use crate::outcome::launch::shortened;
use crate::thread::blocking;

/// Why compiling one part of the tests is not enough.
const LATER: &str = "tests that the build compiles later, leaves out or writes in Kotlin mention the file, or it mentions left-out ones";
const UNSHOWN: &str = "the revision has no source of tests that shows what the warm compiler makes";
const OTHERWISE: &str = "the warm compiler does not make of the revision's own text what the build made";

fn lost(cause: &str) -> ExecutionError {
    NoAnswer::fault(format!("the warm compiler was lost: {cause}")).into()
}

impl Direct {
    /// Compiles `text` in the file's place, after a proof for the masked revision: the warm compiler must make the
    /// build's classes of the revision's own text. The proof covers all unknown conditions that affect a compiler. If
    /// the revision has no such file, another source replaces the file in the proof.
    ///
    /// Returns the answer, and the files that annotation processors made. A broken or lost compiler is an answer only
    /// if it is confirmed that the submission exhausts compilers.
    pub(super) async fn compile_proven(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        masked: &Arc<MaskedRevision>,
        text: &[u8],
    ) -> Result<(CompileAnswer, Files), ExecutionError> {
        // The result for `text` itself, if `text` was compiled for the proof.
        let made = Mutex::new(None);
        let proven = masked.proven.get_or_try_init(|| async {
            let own = masked.own_text()?;
            let mut difference = String::new();
            for reach in [Reach::Dependents, Reach::Part] {
                let (owned, source) = (Arc::clone(masked), own.clone());
                let request = blocking::<_, PreparedError>(move || {
                    Ok(match source {
                        Some(own) => test_request(&owned, own, reach)?,
                        None => other_request(&owned, reach)?,
                    })
                });
                let Some(request) = request.await? else {
                    return Ok(Err(if own.is_some() { LATER } else { UNSHOWN }.to_owned()));
                };
                let started = Instant::now();
                let answer = self.compile(executor, image, &request).await;
                match &answer {
                    Ok(CompileAnswer::Compiled { classes, generated }) => {
                        let processed = made_by_processors(&request, classes, generated);
                        // Processors may make classes without sources of them. Then nothing else shows that the classes
                        // are the processors'.
                        let hidden = processed.first().filter(|_| generated.is_empty());
                        let hidden = hidden.map(|(path, _)| format!("`{path}` comes from no source"));
                        let unlike = masked.unlike_build(classes)?.or(hidden);
                        if unlike.is_none() {
                            // If another compilation set the time before, that value stays.
                            let _ = masked.took.set(started.elapsed());
                            let generates = own.is_some() && !processed.is_empty();
                            if own.as_deref() == Some(text) {
                                let answer = answer.ok().map(|answer| (answer, processed));
                                *made.lock().unwrap_or_else(PoisonError::into_inner) = answer;
                            }
                            return Ok(Ok(Proof { reach, generates }));
                        }
                        difference = unlike.unwrap_or_default();
                    }
                    Ok(CompileAnswer::Errors(errors)) => {
                        let first = errors.first().map(|error| {
                            let file = error.file.as_deref().unwrap_or("no file");
                            format!(" in {file}, line {}: {}", error.line, error.message)
                        });
                        difference = format!("it finds an error{}", first.unwrap_or_default());
                    }
                    // A temporary fault is not kept: the next cell asks again.
                    Ok(CompileAnswer::Broken(cause) | CompileAnswer::Lost(cause)) => return Err(lost(cause)),
                    Err(error) => return Err(lost(&error.to_string())),
                }
            }
            Ok::<_, ExecutionError>(Err(shortened(&format!("{OTHERWISE}: {difference}"))))
        });
        let reach = proven.await?.as_ref().map_err(NoAnswer::unfit)?.reach;
        if let Some(answer) = made.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Ok(answer);
        }
        let (owned, content) = (Arc::clone(masked), text.to_owned());
        let Some(mut request) = blocking::<_, PreparedError>(move || Ok(test_request(&owned, content, reach)?)).await?
        else {
            return Err(NoAnswer::unfit(LATER).into());
        };
        request.patience = masked.took.get().map(|own| patience(*own));
        let exhausts = executor.confirmed.as_ref().is_some_and(|confirmed| confirmed.compilations.is_confirmed());
        let reason = match self.compile(executor, image, &request).await {
            Ok(CompileAnswer::Compiled { classes, generated }) => {
                let processed = made_by_processors(&request, &classes, &generated);
                return Ok((CompileAnswer::Compiled { classes, generated }, processed));
            }
            Ok(answer @ CompileAnswer::Errors(_)) => return Ok((answer, Files::new())),
            // Maven compiled the same text already, on other code.
            Ok(answer @ (CompileAnswer::Broken(_) | CompileAnswer::Lost(_))) if exhausts => {
                return Ok((answer, Files::new()));
            }
            Ok(CompileAnswer::Broken(cause)) => NoAnswer::unfit(format!("the warm compiler broke: {cause}")),
            Ok(CompileAnswer::Lost(cause)) => return Err(lost(&cause)),
            Err(error) => NoAnswer::fault(format!("the warm compiler can't be reached: {error}")),
        };
        Err(reason.into())
    }

    /// Checks that annotation processors make only such files of a text that they make of any source, and did the same
    /// for the original text. Otherwise the tree may contain processors' lists of all sources, which a part of the
    /// sources can't reproduce.
    pub(super) async fn check_processors(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        masked: &Arc<MaskedRevision>,
        made_of_text: &[(String, Vec<u8>)],
    ) -> Result<(), ExecutionError> {
        let proof = masked.proven.get().and_then(|proven| proven.as_ref().ok());
        let reach = proof.map_or(Reach::Dependents, |proof| proof.reach);
        let made = masked.processors.get_or_try_init(|| async {
            let mut made = Vec::new();
            for text in [Some(NOTHING.to_vec()), masked.own_text()?].into_iter().flatten() {
                let (owned, alone) = (Arc::clone(masked), text == NOTHING);
                let request = blocking::<_, PreparedError>(move || {
                    Ok(if alone { Some(nothing_request(&owned)) } else { test_request(&owned, text, reach)? })
                });
                let Some(request) = request.await? else {
                    return Ok(Err(LATER.to_owned()));
                };
                match self.compile(executor, image, &request).await {
                    Ok(CompileAnswer::Compiled { classes, generated }) => {
                        made.push(made_by_processors(&request, &classes, &generated));
                    }
                    // A temporary fault is not kept: the next cell asks again.
                    Ok(CompileAnswer::Lost(cause)) => return Err(lost(&cause)),
                    Ok(other) => return Ok(Err(format!("what annotation processors do can't be told: {other:?}"))),
                    Err(error) => return Err(lost(&error.to_string())),
                }
            }
            let first = made.first().cloned().unwrap_or_default();
            if made.iter().any(|one| *one != first) {
                return Ok(Err("annotation processors make something of the revision's own file".to_owned()));
            }
            Ok::<_, ExecutionError>(Ok(first))
        });
        if made.await?.as_ref().map_err(NoAnswer::unfit)?.as_slice() != made_of_text {
            return Err(NoAnswer::unfit("annotation processors make something of the file").into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
