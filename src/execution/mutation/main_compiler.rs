//! Compiles other texts of one main source, with the same result as the build.
//!
//! A text with the source's own declarations affects no other source. It is compiled alone, against the other sources'
//! classes. Other texts are compiled with all sources of the call. Every text is, if compiling the source alone does
//! not give the build's classes (module descriptors, warnings as errors, processors that look at all sources).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::execution::attempt::ATTEMPTS;
use crate::execution::build::compiled_tree::{CompiledTree, MOST_READ_BYTES, TreeError};
use crate::execution::build::compiler::{CompileAnswer, CompileRequest, Diagnostic, Files};
use crate::execution::build::prepared::{CompiledRevision, in_tree};
use crate::execution::build::recording::CompilerCall;
use crate::execution::container::RepositoryImage;
use crate::execution::container::places::PROJECT;
use crate::execution::direct::Direct;
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, NoAnswer, engine_fault};
use crate::java;

/// The result of compiling another text of a main source.
#[derive(Clone, Debug)]
pub enum MainCompilation {
    /// Files that differ from the prepared revision: classes and files that processors made, by path relative to the
    /// tree.
    Compiled(Files),
    /// The text does not compile.
    Errors,
}

/// The result of a request, after all tries.
enum Answer {
    Compiled(Files),
    Errors(Vec<Diagnostic>),
    /// The compiler breaks on the request.
    Broken(String),
    /// The compiler was lost in every try.
    Lost(String),
}

/// The compiler of one main source of a prepared revision.
pub struct MainCompiler<'a> {
    direct: &'a Direct,
    executor: &'a Executor,
    image: &'a RepositoryImage,
    revision: &'a CompiledRevision,
    call: &'a CompilerCall,
    /// The source, absolute in the container.
    path: String,
    tree: Arc<CompiledTree>,
    source: Vec<u8>,
    /// The source's declarations; `None` if no text can be compiled alone.
    declarations: Option<String>,
    /// Whether all sources together are known to give the build's classes.
    whole_is_built: AtomicBool,
    /// Whether a compiler failed that had several texts at once. Each text is a request of its own then.
    fails_together: AtomicBool,
}

/// The most bytes of texts that a compiler gets at once. It holds what it parsed of them in memory.
const MOST_BYTES_TOGETHER: usize = 2 << 20;

impl<'a> MainCompiler<'a> {
    /// Returns the compiler of the source at `path`, relative to the tree, whose bytes are `source`.
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub async fn new(
        direct: &'a Direct,
        executor: &'a Executor,
        image: &'a RepositoryImage,
        revision: &'a CompiledRevision,
        path: &str,
        source: &[u8],
    ) -> Result<Self, ExecutionError> {
        let path = format!("{PROJECT}/{path}");
        // If the plugin had several executions, the last one wrote the classes.
        let Some(call) = revision.main_calls.iter().rev().find(|call| call.sources.contains(&path)) else {
            return Err(NoAnswer::unfit(format!("`{}` is no source that was compiled", in_tree(&path))).into());
        };
        let archive = direct.archive(revision)?;
        let tree = tokio::task::spawn_blocking(move || CompiledTree::open(&archive)).await;
        let tree = match tree.map_err(std::io::Error::other)? {
            Ok(tree) => Arc::new(tree),
            Err(TreeError::TooLarge(reason)) => return Err(NoAnswer::unfit(reason).into()),
            Err(TreeError::Io(error)) => return Err(error.into()),
        };
        let length = |source: &String| tree.file(in_tree(source)).map_or(0, |place| place.length);
        if let Some(source) = call.sources.iter().find(|source| length(source) > MOST_READ_BYTES) {
            return Err(NoAnswer::unfit(format!("`{}` is too large to be read", in_tree(source))).into());
        }
        let mut this = Self {
            direct,
            executor,
            image,
            revision,
            call,
            path,
            tree,
            source: source.to_owned(),
            declarations: java::declarations(source),
            whole_is_built: AtomicBool::new(false),
            fails_together: AtomicBool::new(false),
        };
        if this.declarations.is_some() {
            match this.compile_one(source).await? {
                Answer::Compiled(files) if files.is_empty() => return Ok(this),
                _ => this.declarations = None,
            }
        }
        this.checked().await?;
        Ok(this)
    }

    /// Fails if all sources together do not give the build's classes. Every text that is compiled with them would then
    /// lack the build's changes to the other classes.
    async fn checked(&self) -> Result<(), ExecutionError> {
        if self.whole_is_built.load(Ordering::Relaxed) {
            return Ok(());
        }
        let reason = match self.whole(&self.source).await? {
            Answer::Compiled(files) => match files.first() {
                None => {
                    self.whole_is_built.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                Some((other, _)) => NoAnswer::unfit(format!(
                    "`{other}` is not what the compiler makes: the build changes it afterwards, or compiles otherwise"
                )),
            },
            Answer::Errors(errors) => {
                let said = errors.first().map_or("", |error| error.message.as_str());
                NoAnswer::unfit(format!("the main sources do not compile a second time: {said}"))
            }
            // This failure may not repeat, so it must not decide which compiler judges.
            Answer::Broken(cause) => NoAnswer::never(format!("the warm compiler breaks: {cause}")),
            Answer::Lost(cause) => NoAnswer::fault(format!("the warm compiler was lost: {cause}")),
        };
        Err(reason.into())
    }

    /// Compiles another text of the source.
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub async fn compile(&self, text: &str) -> Result<MainCompilation, ExecutionError> {
        self.answered(text, None).await
    }

    /// Compiles other texts of the source, each with the same result as [`Self::compile`].
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub async fn compile_all(&self, texts: &[&str]) -> Result<Vec<MainCompilation>, ExecutionError> {
        let mut compilations = Vec::with_capacity(texts.len());
        while let Some(rest) = texts.get(compilations.len()..).filter(|rest| !rest.is_empty()) {
            let mut size = 0;
            let fitting = rest.iter().take_while(|text| {
                size += text.len();
                size <= MOST_BYTES_TOGETHER
            });
            let (now, _) = rest.split_at(fitting.count().max(1));
            let mut answers = self.together(now).await?.into_iter();
            for text in now {
                compilations.push(self.answered(text, answers.next()).await?);
            }
        }
        Ok(compilations)
    }

    /// Returns the compiler's answers to the first of these texts, which it gets at once: alone if any text can be compiled
    /// alone, otherwise with all sources. The others are left to requests of their own.
    async fn together(&self, texts: &[&str]) -> Result<Vec<Answer>, ExecutionError> {
        if texts.len() < 2 || self.fails_together.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let request = match self.declarations {
            Some(_) => self.prepared(Files::new(), vec![self.path.clone()])?,
            None => {
                let mut files = self.sources().await?;
                let sources = files.iter().map(|(path, _)| path.clone()).collect();
                files.retain(|(path, _)| *path != self.path);
                self.prepared(files, sources)?
            }
        };
        let each = self.direct.compile_each(self.executor, self.image, &request, (&self.path, texts)).await;
        let answers = each.unwrap_or_default();
        if answers.len() < texts.len() {
            self.fails_together.store(true, Ordering::Relaxed);
        }
        answers.into_iter().map(|answer| self.read(answer)).collect()
    }

    /// Returns the result for a text, given the compiler's answer if it was asked: to the text alone if any can be compiled
    /// alone, otherwise to the text with all sources.
    async fn answered(&self, text: &str, known: Option<Answer>) -> Result<MainCompilation, ExecutionError> {
        let mut answer = None;
        let mut known = known;
        if let Some(own) = &self.declarations {
            let answered = match known.take() {
                Some(known) => known,
                None => self.compile_one(text.as_bytes()).await?,
            };
            // Errors of the text itself appear whatever else is compiled.
            let settled = match &answered {
                Answer::Compiled(files) => {
                    files.iter().all(|(path, _)| path.ends_with(".class"))
                        && java::declarations(text.as_bytes()).as_ref() == Some(own)
                }
                Answer::Errors(_) | Answer::Broken(_) | Answer::Lost(_) => true,
            };
            answer = settled.then_some(answered);
        }
        let answer = match answer.or(known) {
            Some(answer) => answer,
            None => {
                self.checked().await?;
                self.whole(text.as_bytes()).await?
            }
        };
        match answer {
            Answer::Compiled(files) => Ok(MainCompilation::Compiled(files)),
            Answer::Errors(_) | Answer::Broken(_) => Ok(MainCompilation::Errors),
            // If the compiler is lost on a text in every try and still compiles the source, the text is at fault.
            Answer::Lost(cause) => match self.recompiled().await? {
                Answer::Compiled(_) => Ok(MainCompilation::Errors),
                _ => Err(NoAnswer::fault(format!("the warm compiler was lost: {cause}")).into()),
            },
        }
    }

    /// Compiles the source itself again.
    async fn recompiled(&self) -> Result<Answer, ExecutionError> {
        match self.declarations {
            Some(_) => self.compile_one(&self.source).await,
            None => self.whole(&self.source).await,
        }
    }

    async fn compile_one(&self, text: &[u8]) -> Result<Answer, ExecutionError> {
        let files = vec![(self.path.clone(), text.to_owned())];
        self.request(files, vec![self.path.clone()]).await
    }

    /// Returns all sources of the call that the tree has.
    async fn sources(&self) -> Result<Files, ExecutionError> {
        let (tree, sources) = (Arc::clone(&self.tree), self.call.sources.clone());
        let read = move || -> std::io::Result<Files> {
            let found = sources.into_iter().filter_map(|source| Some((tree.file(in_tree(&source))?, source)));
            found.map(|(place, source)| Ok((source, tree.read(place)?))).collect()
        };
        Ok(tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)??)
    }

    async fn whole(&self, text: &[u8]) -> Result<Answer, ExecutionError> {
        let mut files = self.sources().await?;
        for (path, content) in &mut files {
            if *path == self.path {
                *content = text.to_owned();
            }
        }
        let sources = files.iter().map(|(path, _)| path.clone()).collect();
        self.request(files, sources).await
    }

    /// Returns the request that compiles these sources as the call does.
    fn prepared(&self, files: Files, sources: Vec<String>) -> Result<CompileRequest, ExecutionError> {
        let call = self.call;
        let mut directories: Vec<String> = call.generated_sources.iter().chain(&call.source_roots).cloned().collect();
        directories.dedup();
        Ok(CompileRequest {
            arguments: call.arguments.clone(),
            inputs: self.direct.inputs(self.revision)?,
            output: call.output.clone(),
            directories,
            files,
            sources,
            patience: None,
        })
    }

    /// Compiles; after a broken compiler, in a new one. Returns the files that differ from the tree.
    async fn request(&self, files: Files, sources: Vec<String>) -> Result<Answer, ExecutionError> {
        let request = self.prepared(files, sources)?;
        let mut attempt = 1;
        loop {
            match self.direct.compile(self.executor, self.image, &request).await {
                Ok(CompileAnswer::Broken(_) | CompileAnswer::Lost(_)) if attempt < ATTEMPTS => attempt += 1,
                Ok(answer) => return self.read(answer),
                Err(error) => return Err(engine_fault(&error).into()),
            }
        }
    }

    /// Returns the files that differ from the tree, or why there are none.
    fn read(&self, answer: CompileAnswer) -> Result<Answer, ExecutionError> {
        Ok(match answer {
            CompileAnswer::Compiled { classes, generated } => {
                let output = in_tree(&self.call.output);
                let classes = classes.into_iter().map(|(path, content)| (format!("{output}/{path}"), content));
                let generated = generated.into_iter().map(|(path, content)| (in_tree(&path).to_owned(), content));
                Answer::Compiled(self.changed(classes.chain(generated))?)
            }
            CompileAnswer::Errors(errors) => Answer::Errors(errors),
            CompileAnswer::Broken(cause) => Answer::Broken(cause),
            CompileAnswer::Lost(cause) => Answer::Lost(cause),
        })
    }

    /// Returns the files that the tree lacks, or has with other content.
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

#[cfg(test)]
mod tests;
