//! Fuzzing of everything that reads bytes of a guest, on the stable toolchain.
//!
//! A target is a function of bytes that panics when a promise is broken. The driver replays a
//! corpus that is kept in the repository, then mutates it with a seeded generator for a bounded
//! number of rounds and prints the seed, so that every failure can be repeated:
//! `cargo run -p dayfly-fuzz -- --iterations N --seed S`.
//!
//! This crate must not know sockets or processes. Start reading at [`proto_decode`].
#![forbid(unsafe_code)]

pub mod mutate;
pub mod proto_decode;

use std::io;
use std::path::PathBuf;

use mutate::Generator;

/// Longest input. More than three of the longest frames, so that one can follow another.
pub const INPUT_BYTES_MAX: usize = 256 << 10;

/// How much to do, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub iterations: u64,
    pub seed: u64,
}

/// The inputs of a target that are kept in the repository.
///
/// # Errors
/// When the directory or a file in it cannot be read.
pub fn read_corpus(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)?
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
