//! Runs a target for as long as asked: `dayfly-fuzz --iterations N --seed S`.
//!
//! With `--seed-corpus FILE` it writes the first inputs instead, one for each line of messages.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use dayfly_fuzz::{Plan, drive, proto_decode, read_corpus};

const ITERATIONS_DEFAULT: u64 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut plan = Plan {
        iterations: ITERATIONS_DEFAULT,
        seed: seed_of_now(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--iterations" => plan.iterations = value.parse()?,
            "--seed" => plan.seed = value.parse()?,
            "--seed-corpus" => return seed_corpus(&PathBuf::from(value)),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    let corpus = read_corpus("proto_decode")?;
    let Plan { iterations, seed } = plan;
    let mut output = std::io::stdout();
    writeln!(
        output,
        "proto_decode: {} inputs, --iterations {iterations} --seed {seed}",
        corpus.len()
    )?;
    drive(&corpus, plan, proto_decode::check);
    writeln!(output, "proto_decode: every promise held")?;
    Ok(())
}

fn seed_of_now() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ now.as_secs().rotate_left(32)
}

/// Writes one input for each line of a file of messages.
fn seed_corpus(messages: &PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(messages)?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus/proto_decode");
    std::fs::create_dir_all(&directory)?;
    for (name, bytes) in proto_decode::seed_inputs(&lines) {
        std::fs::write(directory.join(name), bytes)?;
    }
    Ok(())
}
