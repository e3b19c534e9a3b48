//! Throws damaged input at every parser of `testevo_sandbox` that reads what others made, and checks what must hold of each.
//!
//! A [`Target`] is one function from bytes. `tests/bounded.rs` calls it in CI with seeds and a bounded number of random
//! changes. `guided/` calls the same function with inputs that a coverage-guided fuzzer finds; that takes hours and a C++ compiler.
//! How to run both, and what was found: `docs/fuzzing.md`.

mod memory;
mod mutate;
mod scratch;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;

pub use targets::TARGETS;

/// Bytes that any target may take, whatever its input is.
const MEMORY_ANYWAY: u64 = 32 << 20;

/// How much processor time one input may take, with the checks of a debug build.
const PATIENCE: Duration = Duration::from_secs(10);

/// A parser with what must hold of it.
pub struct Target {
    /// Its name, an identifier.
    pub name: &'static str,
    /// Parses an input with the program's own parser. It panics where something does not hold.
    pub run: fn(&[u8]),
    /// Returns well-formed inputs, made by this program's own writers or by hand.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Texts that mean something in the format.
    pub words: &'static [&'static [u8]],
    /// Random changes that CI tries.
    pub runs: u32,
    /// The longest input in bytes that random changes make.
    pub most_bytes: usize,
    /// Bytes of memory that each byte of an input may take.
    pub memory: u64,
}

impl Target {
    /// Returns the target of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Parses an input, and checks time and memory as well.
    ///
    /// # Panics
    /// Where something does not hold.
    pub fn check(&self, input: &[u8]) {
        let began = processor_time();
        let peak = memory::peak_of(|| (self.run)(input));
        let limit = MEMORY_ANYWAY + self.memory * input.len() as u64;
        assert!(peak <= limit, "{peak} bytes of memory for an input of {} bytes; {limit} are allowed", input.len());
        let took = processor_time().saturating_sub(began);
        assert!(took <= PATIENCE, "{took:?} for an input of {} bytes", input.len());
    }

    /// Returns inputs that once failed. They lie in `fuzz/regressions/<target>/`.
    ///
    /// # Errors
    /// I/O errors of reading them.
    pub fn regressions(&self) -> std::io::Result<Vec<PathBuf>> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(self.name);
        let mut paths = Vec::new();
        if directory.is_dir() {
            for entry in fs::read_dir(directory)? {
                paths.push(entry?.path());
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Checks everything that CI checks of the target, and returns the number of inputs: what once failed, the seeds, and random
    /// changes of both, the same ones each time.
    ///
    /// Before an input is tried it is written to `current`, for the case that it ends the process.
    ///
    /// # Errors
    /// The first input that fails, in words, with the command that tries it again. I/O errors.
    pub fn bounded(&self, failures: &Path) -> Result<u32, String> {
        let io = |error: std::io::Error| error.to_string();
        fs::create_dir_all(failures).map_err(io)?;
        let current = failures.join(format!("{}.current", self.name));
        let mut kept = (self.seeds)();
        for path in self.regressions().map_err(io)? {
            kept.push(fs::read(path).map_err(io)?);
        }
        let number = kept.len() as u32;
        // A number of the name's own, so that a further target changes nothing for the others.
        let seed = self.name.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(byte.into()));
        let mut mutator = mutate::Mutator::new(kept.clone(), self.words, self.most_bytes, seed);
        let changed = (0..self.runs).map(|_| mutator.input());
        for input in kept.into_iter().chain(changed) {
            fs::write(&current, &input).map_err(io)?;
            if catch_unwind(AssertUnwindSafe(|| self.check(&input))).is_err() {
                let path =
                    failures.join(format!("{}-{}", self.name, testevo_sandbox::digest::Digest::of(&input).hex()));
                fs::write(&path, &input).map_err(io)?;
                let shown = input.iter().take(4096).copied().collect::<Vec<_>>().escape_ascii().to_string();
                return Err(format!(
                    "the target `{}` fails; try it again with\n  cargo run -p fuzz -- {} {}\nIt has {} bytes and begins with\n  {shown}",
                    self.name,
                    self.name,
                    path.display(),
                    input.len(),
                ));
            }
        }
        fs::remove_file(&current).map_err(io)?;
        Ok(number + self.runs)
    }
}

/// Returns how long this thread has run. Wall time would make a busy machine's tests fail.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_else(|error| panic!("{error}"));
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_else(|| panic!("`{text}` has no processor time")))
}
