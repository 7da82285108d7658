//! Fuzzing of everything that reads bytes of a guest, an engine or a stranger.
//!
//! A target is a function of bytes that panics when a promise is broken. Each has a corpus in the
//! repository. The tests replay it and mutate it with a seeded generator, which is quick and says
//! the same everywhere; `fuzz/guided` runs the same targets under coverage guidance, for hours. A
//! corpus has what it began with (`seed-`), what was found broken once (`found-`), and some of what
//! guidance has reached. Both use the stable toolchain.
//!
//! ```text
//! cargo run -p dayfly-fuzz -- --target NAME --iterations N --seed S
//! ```
//!
//! This crate must not know sockets or processes. Start reading at [`targets`].
#![forbid(unsafe_code)]

pub mod mutate;
pub mod targets;

use std::io;
use std::path::PathBuf;

use mutate::Generator;
pub use targets::{TARGETS, Target};

/// Longest input. More than three of the longest frames, so that one can follow another.
pub const INPUT_BYTES_MAX: usize = 256 << 10;

/// How much to do, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub iterations: u64,
    pub seed: u64,
}

/// Where the inputs of a target are kept.
#[must_use]
pub fn corpus_directory(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}

/// The inputs of a target that are kept in the repository.
///
/// # Errors
/// When the directory or a file in it cannot be read.
pub fn read_corpus(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(corpus_directory(target))?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    // The order of a directory is not the same everywhere, and a seed must mean one run.
    paths.sort();
    paths.into_iter().map(std::fs::read).collect()
}

/// Replays the corpus, then mutates it. Panics where the target does.
pub fn drive(corpus: &[Vec<u8>], plan: Plan, target: impl Fn(&[u8])) {
    for input in corpus {
        target(input);
    }
    let mut generator = Generator::new(plan.seed);
    for _ in 0..plan.iterations {
        let mut input = generator.pick(corpus).cloned().unwrap_or_default();
        generator.mutate(&mut input, corpus);
        input.truncate(INPUT_BYTES_MAX);
        target(&input);
    }
}
