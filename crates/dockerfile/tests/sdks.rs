//! What the SDKs make of values, read again: `sdk/templates/dockerfiles.json` has the calls, the text
//! that both make of them, and what that text means.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test without its case must fail"
)]

use std::collections::BTreeMap;

use dayfly_dockerfile::{
    Ignored, RunCommand, StageConfig, StageHealthCommand, StagePlan, StepWork, parse,
};
use serde_json::{Value, json};

const CASES: &str = include_str!("../../../sdk/templates/dockerfiles.json");
/// Patterns, a path, and whether they hide it. The SDKs do not send what they know to be hidden.
const IGNORED: &str = include_str!("../../../sdk/templates/ignored.json");

fn plan(text: &str) -> StagePlan {
    let file = parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    // What it inherits from an earlier stage is no matter here.
    let last = text
        .lines()
        .filter(|line| line.starts_with("FROM "))
        .count()
        - 1;
    let plan = file.plan(last, &StageConfig::default(), &BTreeMap::new());
    plan.unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What a plan means, for the parts that a case has.
fn meaning(plan: &StagePlan) -> Value {
    let mut runs = Vec::new();
    let mut copies = Vec::new();
    for step in &plan.steps {
        match &step.work {
            StepWork::Run { command, .. } => runs.push(match command {
                RunCommand::Words(words) => json!(words),
                RunCommand::Shell { text, .. } | RunCommand::Script(text) => json!(text),
            }),
            StepWork::Copy {
                sources,
                destination,
                ..
            } => copies.push(json!({"sources": sources, "destination": destination})),
            StepWork::MakeDirectory { .. } | StepWork::Nothing => {}
        }
    }
    let config = &plan.config;
    let mut environment = config.environment.clone();
    // Every stage has one.
    environment.remove("PATH");
    let health = config.health.as_ref().map(|health| match &health.command {
        StageHealthCommand::Words(words) => json!(words),
        StageHealthCommand::Shell(text) => json!(text),
    });
    json!({
        "run": runs,
        "copy": copies,
        "environment": environment,
        "directory": config.directory,
        "user": config.user,
        "health": health,
        "start": config.command,
    })
}

/// As the plan writes paths: without a slash at the end, and the whole context as nothing.
fn planned(mut copy: Value) -> Value {
    let trimmed = copy["destination"]
        .as_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    copy["destination"] = json!(trimmed);
    for source in copy["sources"].as_array_mut().unwrap() {
        if source == "." {
            *source = json!("");
        }
    }
    copy
}

#[test]
fn what_the_sdks_write_means_what_they_were_given() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let mut compared = 0;
    for case in cases {
        let Some(lines) = case["dockerfile"].as_array() else {
            continue;
        };
        let lines = lines.iter().map(|line| line.as_str().unwrap());
        let text = lines.collect::<Vec<_>>().join("\n") + "\n";
        let found = meaning(&plan(&text));
        for (part, expected) in case["means"].as_object().unwrap() {
            let expected = match expected.as_array() {
                Some(copies) if part == "copy" => copies.iter().cloned().map(planned).collect(),
                _ => expected.clone(),
            };
            assert_eq!(found[part], expected, "{part} of {}", case["name"]);
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn what_the_sdks_hide_is_hidden() {
    let cases: Vec<(String, String, bool)> = serde_json::from_str(IGNORED).unwrap();
    assert!(!cases.is_empty());
    for (patterns, path, expected) in cases {
        let hides = Ignored::parse(&patterns).unwrap().hides(&path);
        assert_eq!(hides, expected, "{patterns:?} {path}");
    }
}
