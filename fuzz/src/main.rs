//! Tries inputs by hand, and writes what a coverage-guided fuzzer begins with.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

use std::path::Path;
use std::process::ExitCode;

use fs_err as fs;
use fuzz::{TARGETS, Target};

const USAGE: &str = "\
usage: fuzz list                     the names of all targets
       fuzz TARGET FILE…             tries inputs
       fuzz seeds TARGET DIRECTORY   writes its seeds and what once failed
       fuzz words TARGET             its dictionary, as libFuzzer reads it";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["list"] => {
            TARGETS.iter().for_each(|target| println!("{}", target.name));
            Ok(())
        }
        ["seeds", target, directory] => named(target).and_then(|target| seeds(target, Path::new(directory))),
        ["words", target] => named(target).map(|target| {
            for word in target.words {
                let text: String = word.iter().map(|byte| format!("\\x{byte:02x}")).collect();
                println!("\"{text}\"");
            }
        }),
        [target, files @ ..] if !files.is_empty() => named(target).and_then(|target| {
            for file in files {
                let input = fs::read(file).map_err(|error| error.to_string())?;
                target.check(&input);
                println!("{file}: {} bytes, nothing fails", input.len());
            }
            Ok(())
        }),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn named(name: &str) -> Result<&'static Target, String> {
    Target::named(name).ok_or_else(|| format!("there is no target `{name}`\n{USAGE}"))
}

fn seeds(target: &Target, directory: &Path) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    fs::create_dir_all(directory).map_err(io)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        fs::write(directory.join(format!("seed-{number:03}")), seed).map_err(io)?;
    }
    for path in target.regressions().map_err(io)? {
        let name = path.file_name().unwrap_or_default().to_owned();
        fs::copy(&path, directory.join(name)).map_err(io)?;
    }
    Ok(())
}
