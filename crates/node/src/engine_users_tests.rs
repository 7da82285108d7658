//! Tests of who needs an engine.

use super::*;
use crate::journal::tests::sample;

#[test]
fn a_machine_needs_what_it_runs_in_and_one_that_does_not_say_may_need_any() {
    let mut record = sample(1);
    let engine = EngineIdentity {
        kind: dayfly_vmm::EngineKind::Fake,
        version: "1".to_owned(),
        accelerator: dayfly_vmm::Accelerator::Tcg,
        cpu_model: "fake".to_owned(),
        build: Some(dayfly_vmm::EngineBuild::new("a")),
    };
    record.engine = Some(engine.clone());
    let id = record.id.clone();
    let entries = |record: &crate::journal::SandboxRecord| {
        vec![
            Entry::Record(Box::new(record.clone())),
            Entry::Empty { id: sample(2).id },
        ]
    };
    let users = running_users(&entries(&record)).unwrap();
    assert_eq!(
        users,
        [EngineUser {
            engine,
            what: EngineUse::Running(id)
        }]
    );
    record.engine = None;
    assert_eq!(running_users(&entries(&record)), Err(UnknownEngine));
}
