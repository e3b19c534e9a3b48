//! Compiles other texts of one main source, with the result that the build would have.
//!
//! A text with the source's own declarations affects no other source. It is compiled alone, against the other sources'
//! classes. Other texts are compiled with all sources of the call. So is every text if compiling the source alone does
//! not give the build's classes (module descriptors, warnings as errors, processors that look at all sources).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::execution::attempt::ATTEMPTS;
use crate::execution::build::compiled_tree::{CompiledTree, MOST_READ_BYTES, TreeError};
use crate::execution::build::compiler::{CompileAnswer, CompileRequest, Diagnostic, Files};
use crate::execution::build::prepared::{CompiledRevision, in_tree};
use crate::execution::build::recording::CompilerCall;
use crate::execution::container::Environment;
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
    /// All sources together are known to come out as the build has them.
    whole_is_built: AtomicBool,
}

impl<'a> MainCompiler<'a> {
    /// Returns the compiler of the source at `path`, relative to the tree, whose bytes are `source`.
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub async fn new(
        direct: &'a Direct,
        executor: &'a Executor,
        environment: &'a Environment,
        revision: &'a CompiledRevision,
        path: &str,
        source: &[u8],
    ) -> Result<Self, ExecutionError> {
        let path = format!("{PROJECT}/{path}");
        // Of several executions the last one's classes are what is there.
        let Some(call) = revision.main_calls.iter().rev().find(|call| call.sources.contains(&path)) else {
            return Err(NoAnswer::unfit(format!("`{}` is no source that was compiled", in_tree(&path))).into());
        };
        let archive = direct.archive(revision);
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
            environment,
            revision,
            call,
            path,
            tree,
            source: source.to_owned(),
            declarations: java::declarations(source),
            whole_is_built: AtomicBool::new(false),
        };
        if this.declarations.is_some() {
            match this.alone(source).await? {
                Answer::Compiled(files) if files.is_empty() => return Ok(this),
                _ => this.declarations = None,
            }
        }
        this.checked().await?;
        Ok(this)
    }

    /// Says why all sources together do not come out as the build has them, where they don't: what the build does to the others'
    /// classes would be missing of every text that is compiled with them.
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
            // Not every time, perhaps: it must not decide who judges.
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
        let mut answer = None;
        if let Some(own) = &self.declarations {
            let alone = self.alone(text.as_bytes()).await?;
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
            None => {
                self.checked().await?;
                self.whole(text.as_bytes()).await?
            }
        };
        match answer {
            Answer::Compiled(files) => Ok(MainCompilation::Compiled(files)),
            Answer::Errors(_) | Answer::Broken(_) => Ok(MainCompilation::Errors),
            // What the compiler is lost on in every attempt is at fault itself, if the source is still compiled.
            Answer::Lost(cause) => match self.recompiled().await? {
                Answer::Compiled(_) => Ok(MainCompilation::Errors),
                _ => Err(NoAnswer::fault(format!("the warm compiler was lost: {cause}")).into()),
            },
        }
    }

    /// Compiles the source itself again.
    async fn recompiled(&self) -> Result<Answer, ExecutionError> {
        match self.declarations {
            Some(_) => self.alone(&self.source).await,
            None => self.whole(&self.source).await,
        }
    }

    async fn alone(&self, text: &[u8]) -> Result<Answer, ExecutionError> {
        let files = vec![(self.path.clone(), text.to_owned())];
        self.request(files, vec![self.path.clone()]).await
    }

    async fn whole(&self, text: &[u8]) -> Result<Answer, ExecutionError> {
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
    async fn request(&self, files: Files, sources: Vec<String>) -> Result<Answer, ExecutionError> {
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
                    return Ok(Answer::Compiled(self.changed(classes.chain(generated))?));
                }
                Ok(CompileAnswer::Errors(errors)) => return Ok(Answer::Errors(errors)),
                Ok(CompileAnswer::Broken(_) | CompileAnswer::Lost(_)) if attempt < ATTEMPTS => attempt += 1,
                Ok(CompileAnswer::Broken(cause)) => return Ok(Answer::Broken(cause)),
                Ok(CompileAnswer::Lost(cause)) => return Ok(Answer::Lost(cause)),
                Err(error) => return Err(engine_fault(&error).into()),
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

#[cfg(test)]
mod tests {
    use std::slice;

    use fs_err as fs;

    use super::*;
    use crate::artifact::store::Store;
    use crate::data_dir::DataDir;
    use crate::engine::scripted::{Said, Scripted, exited, step_end};
    use crate::execution::build::compiler::tests::{broken, compiled, errors, said};
    use crate::execution::build::masked::tests::masked;
    use crate::execution::direct::write_files;
    use crate::execution::fault::{Remedy, answered};
    use crate::execution::scripted::{direct, environment, executor};

    const SOURCE: &str = "class A { int a() { return 1; } }";
    const OTHER_BODY: &str = "class A { int a() { return 2; } }";
    const OTHER_DECLARATION: &str = "class A { long a() { return 1; } }";
    /// The other source of the call.
    const USER: &str = "class B { int b = new A().a(); }";

    /// The classes of the build.
    const BUILT: [(&str, &[u8]); 2] = [("A.class", b"A"), ("B.class", b"B")];
    /// Those that come of another text.
    const CHANGED: [(&str, &[u8]); 2] = [("A.class", b"other A"), ("B.class", b"other B")];

    /// A compiler that answers so and goes on.
    fn lives(answers: &[Vec<u8>]) -> Said {
        Said { frames: said(answers), ends: false }
    }

    /// A compiler that answers so and is killed then.
    fn is_killed(answers: &[Vec<u8>]) -> Said {
        Said { frames: [said(answers), vec![step_end(1, exited(137))]].concat(), ends: true }
    }

    /// A prepared revision of two main sources, and compilers by a script.
    struct Place {
        _directory: tempfile::TempDir,
        engine: Arc<Scripted>,
        direct: Direct,
        executor: Executor,
        environment: Environment,
        revision: CompiledRevision,
    }

    impl Place {
        /// Returns one whose script is told how many compilers were started before.
        fn new(script: impl Fn(usize) -> Said + Send + Sync + 'static) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
            let engine = Arc::new(Scripted::new(move |number, _| script(number)));
            let archive = directory.path().join("tree.tar");
            let files: [(&str, &[u8]); 4] = [
                ("main/A.java", SOURCE.as_bytes()),
                ("main/B.java", USER.as_bytes()),
                ("target/classes/A.class", BUILT[0].1),
                ("target/classes/B.class", BUILT[1].1),
            ];
            write_files(&archive, files.into_iter()).unwrap();
            let call = serde_json::json!({
                "project": "g:a", "goal": "compile", "compiler": "javac", "arguments": [],
                "sources": [format!("{PROJECT}/main/A.java"), format!("{PROJECT}/main/B.java")],
                "output": format!("{PROJECT}/target/classes"), "generated_sources": null, "proc": null,
            });
            let (_other_directory, other) = masked(&[("src/ATest.java", b"class ATest {}")], "src/ATest.java");
            let revision = CompiledRevision {
                tree: Store::of(&data_dir).unwrap().put(&fs::read(&archive).unwrap()).unwrap(),
                main_calls: vec![serde_json::from_value(call).unwrap()],
                ..other.unwrap().revision.as_ref().clone()
            };
            let (direct, executor) = (direct(&engine, &data_dir), executor(&engine, &data_dir));
            Self { _directory: directory, engine, direct, executor, environment: environment(), revision }
        }

        async fn compiler(&self) -> Result<MainCompiler<'_>, NoAnswer> {
            let Self { direct, executor, environment, revision, .. } = self;
            let source = SOURCE.as_bytes();
            answered(MainCompiler::new(direct, executor, environment, revision, "main/A.java", source).await).unwrap()
        }

        /// Returns how often compilers were given a text.
        fn given(&self, text: &str) -> usize {
            self.engine.heard().windows(text.len()).filter(|part| *part == text.as_bytes()).count()
        }
    }

    /// Returns the paths of what comes out otherwise with a text, `None` where it does not compile; of a fault, whether it
    /// may pass.
    async fn changes(compiler: &MainCompiler<'_>, text: &str) -> Result<Option<Vec<String>>, bool> {
        match answered(compiler.compile(text).await).unwrap() {
            Ok(MainCompilation::Compiled(files)) => Ok(Some(files.into_iter().map(|(path, _)| path).collect())),
            Ok(MainCompilation::Errors) => Ok(None),
            Err(reason) => Err(reason.may_pass()),
        }
    }

    /// What [`changes`] returns of these paths.
    fn changed(paths: &[&str]) -> Result<Option<Vec<String>>, bool> {
        Ok(Some(paths.iter().copied().map(str::to_owned).collect()))
    }

    #[tokio::test]
    async fn a_changed_declaration_is_compiled_with_all_sources() {
        let place = Place::new(|_| {
            lives(&[
                compiled(&BUILT[..1], &[]),
                compiled(&CHANGED[..1], &[]),
                compiled(&CHANGED[..1], &[]),
                compiled(&BUILT, &[]),
                compiled(&CHANGED, &[]),
                compiled(&CHANGED[..1], &[]),
                errors(),
            ])
        });
        let compiler = place.compiler().await.unwrap();
        assert_eq!(changes(&compiler, OTHER_BODY).await, changed(&["target/classes/A.class"]));
        assert_eq!((place.given(OTHER_BODY), place.given(USER)), (1, 0), "a body concerns no other source");
        let both = changed(&["target/classes/A.class", "target/classes/B.class"]);
        assert_eq!(changes(&compiler, OTHER_DECLARATION).await, both);
        assert_eq!((place.given(OTHER_DECLARATION), place.given(USER)), (2, 2), "once as the build has it");
        assert_eq!(changes(&compiler, OTHER_DECLARATION).await, Ok(None), "it compiles alone, and the other does not");
        assert_eq!((place.given(OTHER_DECLARATION), place.given(USER)), (4, 3));
        assert_eq!((place.given(SOURCE), place.engine.started().len()), (2, 1));
    }

    #[tokio::test]
    async fn nothing_is_compiled_with_others_that_the_build_changes_afterwards() {
        let alone = || compiled(&CHANGED[..1], &[]);
        let woven = compiled(&[BUILT[0], CHANGED[1]], &[]);
        let place = Place::new(move |_| lives(&[compiled(&BUILT[..1], &[]), alone(), alone(), woven.clone()]));
        let compiler = place.compiler().await.unwrap();
        assert_eq!(changes(&compiler, OTHER_BODY).await, changed(&["target/classes/A.class"]), "it concerns no other");
        let reason = answered(compiler.compile(OTHER_DECLARATION).await).unwrap().err().unwrap();
        assert!(reason.remedy == Remedy::AskMaven && reason.cause.contains("`target/classes/B.class`"), "{reason:?}");
        assert_eq!((place.given(OTHER_DECLARATION), place.given(USER)), (1, 1));
    }

    #[tokio::test]
    async fn where_the_source_comes_out_otherwise_alone_every_text_is_compiled_with_all() {
        let place = Place::new(|_| {
            lives(&[compiled(&CHANGED[..1], &[]), compiled(&BUILT, &[]), compiled(&[CHANGED[0], BUILT[1]], &[])])
        });
        let compiler = place.compiler().await.unwrap();
        assert_eq!(place.given(USER), 1);
        assert_eq!(changes(&compiler, OTHER_BODY).await, changed(&["target/classes/A.class"]));
        assert_eq!((place.given(OTHER_BODY), place.given(USER)), (1, 2));

        let place = Place::new(|_| lives(&[compiled(&CHANGED[..1], &[]), compiled(&[BUILT[0], CHANGED[1]], &[])]));
        let reason = place.compiler().await.err().unwrap();
        assert!(reason.cause.contains("`target/classes/B.class`"), "{reason:?}");
        assert_eq!(reason.remedy, Remedy::AskMaven, "{reason:?}");
    }

    #[tokio::test]
    async fn what_the_compiler_breaks_on_every_time_does_not_compile() {
        // One that breaks is ended.
        let place = Place::new(|number| match number {
            0 => lives(&[compiled(&BUILT[..1], &[]), broken()]),
            1..=3 => lives(&[broken()]),
            _ => lives(&[compiled(&CHANGED[..1], &[])]),
        });
        let compiler = place.compiler().await.unwrap();
        assert_eq!(changes(&compiler, OTHER_BODY).await, Ok(None));
        assert_eq!((place.given(OTHER_BODY), place.engine.started().len()), (3, 3));
        assert_eq!(changes(&compiler, OTHER_BODY).await, changed(&["target/classes/A.class"]), "it broke once");
        assert_eq!((place.given(OTHER_BODY), place.engine.started().len()), (5, 5));
        assert_eq!(place.given(SOURCE), 1, "the source is in no doubt");
    }

    #[tokio::test]
    async fn what_the_compiler_is_lost_on_does_not_compile_if_the_source_does() {
        let answers = [("compiles", Some(compiled(&BUILT[..1], &[]))), ("errors", Some(errors())), ("is lost", None)];
        for (name, answer) in answers {
            let (expected, asked) = match name {
                "compiles" => (Ok(None), 2),
                "errors" => (Err(true), 2),
                _ => (Err(true), 4),
            };
            let place = Place::new(move |number| match (number, &answer) {
                (0, _) => is_killed(&[compiled(&BUILT[..1], &[])]),
                (1 | 2, _) | (_, None) => is_killed(&[]),
                (_, Some(answer)) => lives(slice::from_ref(answer)),
            });
            let compiler = place.compiler().await.unwrap();
            assert_eq!(changes(&compiler, OTHER_BODY).await, expected, "the source {name}");
            assert_eq!((place.given(OTHER_BODY), place.given(SOURCE)), (3, asked), "the source {name}");
        }
    }
}
