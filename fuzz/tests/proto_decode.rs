//! A bounded run of the fuzz target on every test run.

use dayfly_fuzz::{Plan, drive, proto_decode, read_corpus};

/// Fixed, so that a red run is red for everybody. Long runs with new seeds are the binary's job.
const PLAN: Plan = Plan {
    iterations: 1500,
    seed: 20_260_101,
};

#[test]
fn corpus_and_its_mutations_keep_every_promise() {
    let corpus = read_corpus("proto_decode").unwrap();
    assert!(corpus.len() > 10, "the corpus is part of the repository");
    println!("seed {}, {} iterations", PLAN.seed, PLAN.iterations);
    drive(&corpus, PLAN, proto_decode::check);
}
