//! Compiles other texts of one main source as the build compiles it: what it says is what the build would say.
//!
//! A text whose declarations are the source's own concerns no other source, so that it is compiled alone, against the classes
//! of the others. Everything else, and every text where the source itself does not come out of that as the build has it
//! (module descriptors, warnings as errors, processors that look at all sources), is compiled with all sources of the call.

use std::sync::Arc;

use super::NoMutants;
use crate::execution::cell::{Environment, Executor};
use crate::execution::compiled_tree::{CompiledTree, MOST_READ_BYTES, TreeError};
use crate::execution::compiler::{CompileAnswer, CompileRequest, Diagnostic, Files};
use crate::execution::direct::Direct;
use crate::execution::fault::{ATTEMPTS, of_engine};
use crate::execution::maven::PROJECT;
use crate::execution::prepared::{CompiledRevision, in_tree};
use crate::execution::recording::CompilerCall;
use crate::java;

/// What came of compiling another text of a main source.
#[derive(Clone, Debug)]
pub enum MainCompilation {
    /// What differs from the prepared revision: classes and what processors made, by path relative to the tree.
    Compiled(Files),
    /// It does not compile.
    Errors,
}

/// What a request came to, after attempts.
enum Answer {
    Compiled(Files),
    Errors(Vec<Diagnostic>),
    /// The compiler breaks on it.
    Broken(String),
    /// The compiler was lost in every attempt.
    Lost(String),
}

/// The compiler of one main source of a prepared revision.
pub struct MainCompiler<'a> {
    direct: &'a Direct,
    executor: &'a Executor,
    environment: &'a Environment,
    revision: &'a CompiledRevision,
    call: &'a CompilerCall,
    /// The source, absolute in the container.
    path: String,
    tree: Arc<CompiledTree>,
    source: Vec<u8>,
    /// The source's declarations, where texts with the same ones can be compiled alone.
    declarations: Option<String>,
}

impl<'a> MainCompiler<'a> {
    /// Returns the compiler of the source at `path`, relative to the tree, whose bytes are `source`.
    ///
    /// # Errors
    /// The file system's.
    pub async fn new(
        direct: &'a Direct,
        executor: &'a Executor,
        environment: &'a Environment,
        revision: &'a CompiledRevision,
        path: &str,
        source: &[u8],
    ) -> std::io::Result<Result<Self, NoMutants>> {
        let path = format!("{PROJECT}/{path}");
        // Of several executions the last one's classes are what is there.
        let Some(call) = revision.main_calls.iter().rev().find(|call| call.sources.contains(&path)) else {
            return Ok(Err(NoMutants::certain(format!("`{}` is no source that was compiled", in_tree(&path)))));
        };
        let archive = direct.archive(revision);
        let tree = tokio::task::spawn_blocking(move || CompiledTree::open(&archive)).await;
        let tree = match tree.map_err(std::io::Error::other)? {
            Ok(tree) => Arc::new(tree),
            Err(TreeError::TooLarge(reason)) => return Ok(Err(NoMutants::certain(reason))),
            Err(TreeError::Io(error)) => return Err(error),
        };
        let length = |source: &String| tree.file(in_tree(source)).map_or(0, |place| place.length);
        if let Some(source) = call.sources.iter().find(|source| length(source) > MOST_READ_BYTES) {
            return Ok(Err(NoMutants::certain(format!("`{}` is too large to be read", in_tree(source)))));
        }
        let mut this = Self {
            direct,
            executor,
            environment,
            revision,
            call,
            path,
            tree,
            source: source.to_owned(),
            declarations: java::declarations(source),
        };
        if this.declarations.is_some() {
            match this.alone(source).await? {
                Ok(Answer::Compiled(files)) if files.is_empty() => return Ok(Ok(this)),
                Ok(_) => this.declarations = None,
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(match this.whole(source).await? {
            Ok(Answer::Compiled(files)) => match files.first() {
                None => Ok(this),
                Some((other, _)) => Err(NoMutants::certain(format!(
                    "`{other}` is not what the compiler makes: the build changes it afterwards, or compiles otherwise"
                ))),
            },
            Ok(Answer::Errors(errors)) => {
                let said = errors.first().map_or("", |error| error.message.as_str());
                Err(NoMutants::certain(format!("the main sources do not compile a second time: {said}")))
            }
            Ok(Answer::Broken(cause)) => Err(NoMutants::certain(format!("the warm compiler breaks: {cause}"))),
            Ok(Answer::Lost(cause)) => Err(NoMutants::passing(format!("the warm compiler was lost: {cause}"))),
            Err(reason) => Err(reason),
        })
    }

    /// Compiles another text of the source.
    ///
    /// # Errors
    /// The file system's.
    pub async fn compile(&self, text: &str) -> std::io::Result<Result<MainCompilation, NoMutants>> {
        let mut answer = None;
        if let Some(own) = &self.declarations {
            let alone = match self.alone(text.as_bytes()).await? {
                Ok(alone) => alone,
                Err(reason) => return Ok(Err(reason)),
            };
            // Errors of the text itself are there whatever else is compiled.
            let settled = match &alone {
                Answer::Compiled(files) => {
                    files.iter().all(|(path, _)| path.ends_with(".class"))
                        && java::declarations(text.as_bytes()).as_ref() == Some(own)
                }
                Answer::Errors(_) | Answer::Broken(_) | Answer::Lost(_) => true,
            };
            answer = settled.then_some(alone);
        }
        let answer = match answer {
            Some(answer) => answer,
            None => match self.whole(text.as_bytes()).await? {
                Ok(answer) => answer,
                Err(reason) => return Ok(Err(reason)),
            },
        };
        Ok(match answer {
            Answer::Compiled(files) => Ok(MainCompilation::Compiled(files)),
            Answer::Errors(_) | Answer::Broken(_) => Ok(MainCompilation::Errors),
            // What the compiler is lost on in every attempt is at fault itself, if the source is still compiled.
            Answer::Lost(cause) => match self.recompiled().await? {
                Ok(Answer::Compiled(_)) => Ok(MainCompilation::Errors),
                Ok(_) => Err(NoMutants::passing(format!("the warm compiler was lost: {cause}"))),
                Err(reason) => Err(reason),
            },
        })
    }

    /// Compiles the source itself again.
    async fn recompiled(&self) -> std::io::Result<Result<Answer, NoMutants>> {
        match self.declarations {
            Some(_) => self.alone(&self.source).await,
            None => self.whole(&self.source).await,
        }
    }

    async fn alone(&self, text: &[u8]) -> std::io::Result<Result<Answer, NoMutants>> {
        let files = vec![(self.path.clone(), text.to_owned())];
        self.request(files, vec![self.path.clone()]).await
    }

    async fn whole(&self, text: &[u8]) -> std::io::Result<Result<Answer, NoMutants>> {
        let (tree, sources) = (Arc::clone(&self.tree), self.call.sources.clone());
        let read = move || -> std::io::Result<Files> {
            let found = sources.into_iter().filter_map(|source| Some((tree.file(in_tree(&source))?, source)));
            found.map(|(place, source)| Ok((source, tree.read(place)?))).collect()
        };
        let mut files = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)??;
        for (path, content) in &mut files {
            if *path == self.path {
                *content = text.to_owned();
            }
        }
        let sources = files.iter().map(|(path, _)| path.clone()).collect();
        self.request(files, sources).await
    }

    /// Compiles, in a compiler of its own where one breaks; what comes out is what differs from the tree.
    async fn request(&self, files: Files, sources: Vec<String>) -> std::io::Result<Result<Answer, NoMutants>> {
        let call = self.call;
        let mut directories: Vec<String> = call.generated_sources.iter().chain(&call.source_roots).cloned().collect();
        directories.dedup();
        let request = CompileRequest {
            arguments: call.arguments.clone(),
            inputs: self.direct.inputs(self.revision),
            output: call.output.clone(),
            directories,
            files,
            sources,
        };
        let mut attempt = 1;
        loop {
            match self.direct.compile(self.executor, self.environment, &request).await {
                Ok(CompileAnswer::Compiled { classes, generated }) => {
                    let output = in_tree(&call.output);
                    let classes = classes.into_iter().map(|(path, content)| (format!("{output}/{path}"), content));
                    let generated = generated.into_iter().map(|(path, content)| (in_tree(&path).to_owned(), content));
                    return Ok(Ok(Answer::Compiled(self.changed(classes.chain(generated))?)));
                }
                Ok(CompileAnswer::Errors(errors)) => return Ok(Ok(Answer::Errors(errors))),
                Ok(CompileAnswer::Broken(_) | CompileAnswer::Lost(_)) if attempt < ATTEMPTS => attempt += 1,
                Ok(CompileAnswer::Broken(cause)) => return Ok(Ok(Answer::Broken(cause))),
                Ok(CompileAnswer::Lost(cause)) => return Ok(Ok(Answer::Lost(cause))),
                Err(error) => return Ok(Err(NoMutants::passing(of_engine(&error).detail))),
            }
        }
    }

    /// Returns the files that the tree does not have as they are.
    fn changed(&self, files: impl Iterator<Item = (String, Vec<u8>)>) -> std::io::Result<Files> {
        let mut changed = Files::new();
        for (path, content) in files {
            let known = match self.tree.file(&path) {
                Some(place) => self.tree.holds(place, &content)?,
                None => false,
            };
            if !known {
                changed.push((path, content));
            }
        }
        Ok(changed)
    }
}
