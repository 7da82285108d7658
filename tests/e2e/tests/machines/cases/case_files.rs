//! Reading the cases, and comparing what came with what they expect.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

/// One case of the directory.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) template: String,
    pub(crate) create: Given,
    pub(crate) steps: Vec<Step>,
    /// The drivers that run it; `None` for all.
    via: Option<Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) on: String,
    pub(crate) call: String,
    pub(crate) given: Given,
    /// The name for what it makes.
    pub(crate) name: Option<String>,
    pub(crate) expect: Value,
    /// The code that it must fail with.
    pub(crate) error: Option<String>,
}

/// Arguments of a call. What is read is taken out, so that whatever is left at the end is what a
/// driver does not know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given(Map<String, Value>);

impl Given {
    /// An argument; null when it is not there.
    pub(crate) fn take(&mut self, name: &str) -> Value {
        self.maybe(name).unwrap_or_default()
    }

    pub(crate) fn maybe(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    pub(crate) fn maybe_text(&mut self, name: &str) -> Result<Option<String>> {
        Ok(serde_json::from_value(self.take(name))?)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String> {
        let found = self.maybe_text(name)?;
        found.with_context(|| format!("{name} is not given"))
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Fails when something was not read.
    pub(crate) fn finish(&self) -> Result<()> {
        let names: Vec<&String> = self.0.keys().collect();
        ensure!(names.is_empty(), "nothing reads {names:?} here");
        Ok(())
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases")
}

/// The cases for a driver, in the order of their files' names.
pub(crate) fn cases_for(driver: &str) -> Result<Vec<Case>> {
    let entries = std::fs::read_dir(directory())?.collect::<std::io::Result<Vec<_>>>()?;
    let mut paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    ensure!(!paths.is_empty(), "there are no cases");
    let read = |path: &PathBuf| read_case(path).with_context(|| path.display().to_string());
    let mut cases = paths.iter().map(read).collect::<Result<Vec<Case>>>()?;
    cases.retain(|case| {
        let via = case.via.as_ref();
        via.is_none_or(|via| via.iter().any(|name| name == driver))
    });
    Ok(cases)
}

fn read_case(path: &Path) -> Result<Case> {
    let mut fields = Given(serde_json::from_slice(&std::fs::read(path)?)?);
    let steps: Vec<Map<String, Value>> = serde_json::from_value(fields.take("steps"))?;
    let case = Case {
        name: fields.text("name")?,
        template: fields.text("template")?,
        create: object(fields.maybe("create"))?,
        steps: steps.into_iter().map(read_step).collect::<Result<_>>()?,
        via: serde_json::from_value(fields.take("via"))?,
    };
    // A word that is spelled wrong would otherwise expect nothing.
    fields.finish()?;
    Ok(case)
}

fn read_step(fields: Map<String, Value>) -> Result<Step> {
    let mut fields = Given(fields);
    let step = Step {
        on: fields
            .maybe_text("on")?
            .unwrap_or_else(|| "main".to_owned()),
        call: fields.text("call")?,
        given: object(fields.maybe("with"))?,
        name: fields.maybe_text("as")?,
        expect: fields.take("expect"),
        error: fields.maybe_text("error")?,
    };
    fields.finish()?;
    Ok(step)
}

fn object(value: Option<Value>) -> Result<Given> {
    Ok(match value {
        Some(value) => Given(serde_json::from_value(value)?),
        None => Given::default(),
    })
}

/// How what was found falls short of what is expected, by the rules of the cases.
pub(crate) fn difference(expected: &Value, found: &Value, place: &str) -> Option<String> {
    if let Value::Object(fields) = expected {
        return fields.iter().find_map(|(name, value)| {
            let place = format!("{place}.{name}");
            match found.get(name) {
                Some(found) => difference(value, found, &place),
                None => Some(format!("{place} is not there: {found}")),
            }
        });
    }
    let part = expected.as_str().and_then(|text| text.strip_prefix('~'));
    let is_met = match part {
        Some(part) => found.as_str().is_some_and(|text| text.contains(part)),
        None => expected == found,
    };
    (!is_met).then(|| format!("{place} is {found}, not {expected}"))
}

#[test]
fn every_field_counts_and_a_part_is_enough_after_a_tilde() {
    let found = serde_json::json!({"a": "some text", "b": [1, 2], "c": {"d": 1, "e": 2}});
    let differs = |expected| difference(&expected, &found, "result").is_some();
    assert!(!differs(serde_json::json!({})));
    assert!(!differs(
        serde_json::json!({"a": "~me te", "b": [1, 2], "c": {"e": 2}})
    ));
    assert!(differs(serde_json::json!({"a": "me te"})));
    assert!(differs(serde_json::json!({"a": "~other"})));
    assert!(differs(serde_json::json!({"b": [1]})));
    assert!(differs(serde_json::json!({"c": {"f": null}})));
}
