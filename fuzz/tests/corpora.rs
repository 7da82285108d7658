//! A bounded run of every target on every test run.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a target without its corpus must fail, and a failed run needs its plan"
)]

use dayfly_fuzz::{Plan, drive, read_corpus, targets};

/// Fixed, so that a red run is red for everybody. New seeds and long runs are for the soak.
const SEED: u64 = 20_260_101;

fn replay(name: &str) {
    let target = targets::find(name).unwrap();
    let corpus = read_corpus(name).unwrap();
    assert!(!corpus.is_empty(), "the corpus is part of the repository");
    let plan = Plan {
        iterations: target.iterations,
        seed: SEED,
    };
    println!("{name}: {} inputs, {plan:?}", corpus.len());
    drive(&corpus, plan, target.check);
}

macro_rules! replayed {
    ($($name:ident),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )+

        #[test]
        fn no_target_is_left_out() {
            let replayed = [$(stringify!($name)),+];
            let all: Vec<&str> = targets::TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(all, replayed);
        }
    };
}

replayed!(
    proto_decode,
    dns_question,
    http_head,
    tls_hello,
    qcow2_layers,
    monitor_line,
    archive_tree,
    image_layers,
    archive_members,
    gateway_head,
    node_records,
    egress_messages,
    capture_manifest,
    template_manifest,
    journal_record,
    copy_mark,
);
