//! Runs targets for as long as asked: `dayfly-fuzz [--target NAME] --iterations N --seed S`.
//!
//! With `--write-seeds` it writes what the corpora begin with instead, and with `--list` the names
//! of the targets.
#![forbid(unsafe_code)]

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use dayfly_fuzz::{Plan, TARGETS, Target, corpus_directory, drive, read_corpus, targets};

const ITERATIONS_DEFAULT: u64 = 20_000;

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut plan = Plan {
        iterations: ITERATIONS_DEFAULT,
        seed: seed_of_now(),
    };
    let mut chosen: Vec<&Target> = TARGETS.iter().collect();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--write-seeds" => return write_seeds(),
            "--list" => return list(),
            _ => {}
        }
        let value = arguments
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--target" => {
                let target = targets::find(&value);
                chosen = vec![target.ok_or_else(|| format!("there is no target {value}"))?];
            }
            "--iterations" => plan.iterations = value.parse()?,
            "--seed" => plan.seed = value.parse()?,
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    let Plan { iterations, seed } = plan;
    let mut output = std::io::stdout();
    for Target { name, check, .. } in chosen {
        let corpus = read_corpus(name)?;
        let count = corpus.len();
        writeln!(
            output,
            "{name}: {count} inputs, --iterations {iterations} --seed {seed}"
        )?;
        drive(&corpus, plan, check);
        writeln!(output, "{name}: every promise held")?;
    }
    Ok(())
}

fn seed_of_now() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ now.as_secs().rotate_left(32)
}

fn list() -> Result<(), AnyError> {
    for target in TARGETS {
        writeln!(std::io::stdout(), "{}", target.name)?;
    }
    Ok(())
}

fn write_seeds() -> Result<(), AnyError> {
    for target in TARGETS {
        let directory = corpus_directory(target.name);
        std::fs::create_dir_all(&directory)?;
        for (name, bytes) in (target.seeds)() {
            std::fs::write(directory.join(name), bytes)?;
        }
    }
    Ok(())
}
