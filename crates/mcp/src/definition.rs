//! What the tools are called and take. Those of the SDKs come from one file; those about sandboxes
//! are only here, because a client of an SDK has a sandbox already.

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value, json};

const SHARED: &str = include_str!("../../../sdk/tools/tools.json");
const OWN: &str = include_str!("sandbox_tools.json");
/// The version of the files that this program understands.
const VERSION: u32 = 1;
/// The argument that every tool has that works in a sandbox.
pub(crate) const SANDBOX: &str = "sandbox";

/// One tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    pub name: String,
    pub title: String,
    pub description: String,
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    /// The JSON schema of its arguments.
    pub input: JsonObject,
    /// The JSON schema of its structured result, if it has one.
    #[serde(default)]
    pub output: Option<JsonObject>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefinitionFile {
    version: u32,
    tools: Vec<ToolDefinition>,
}

/// What a call means that names no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OmittedSandbox {
    /// The client's own.
    Own,
    /// Nothing: this client has no session that could keep one.
    Refused,
}

static DEFINITIONS: LazyLock<Vec<ToolDefinition>> = LazyLock::new(|| {
    let mut tools = read(SHARED);
    for tool in &mut tools {
        if let Some(Value::Object(properties)) = tool.input.get_mut("properties") {
            properties.insert(SANDBOX.to_owned(), sandbox_argument());
        }
    }
    tools.extend(read(OWN));
    tools
});

#[expect(
    clippy::expect_used,
    reason = "both texts are part of the program, and a test reads them"
)]
fn read(text: &str) -> Vec<ToolDefinition> {
    let file: DefinitionFile = serde_json::from_str(text).expect("the file of tools is valid");
    assert_eq!(file.version, VERSION, "the file of tools has this version");
    file.tools
}

fn sandbox_argument() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 50,
        "description": "Id or name of the sandbox. Default: your own, which is made at its first use."})
}

/// All tools, in the order in which a model reads them.
#[must_use]
pub fn definitions() -> &'static [ToolDefinition] {
    &DEFINITIONS
}

pub(crate) fn find(name: &str) -> Option<&'static ToolDefinition> {
    definitions().iter().find(|tool| tool.name == name)
}

impl ToolDefinition {
    /// As the protocol has it.
    pub(crate) fn listed(&self, omitted: OmittedSandbox) -> Tool {
        let annotations = ToolAnnotations::with_title(&self.title)
            .read_only(self.read_only)
            .destructive(self.destructive)
            .idempotent(self.idempotent)
            // What code in a sandbox reaches is for its network policy to say.
            .open_world(!self.read_only);
        let input = Arc::new(self.input_for(omitted));
        let tool = Tool::new(self.name.clone(), self.description.clone(), input)
            .with_title(&self.title)
            .with_annotations(annotations);
        match &self.output {
            Some(output) => tool.with_raw_output_schema(Arc::new(output.clone())),
            None => tool,
        }
    }

    /// The schema of its arguments. Without a default, the sandbox must be named.
    pub(crate) fn input_for(&self, omitted: OmittedSandbox) -> JsonObject {
        let mut input = self.input.clone();
        let takes_sandbox = input["properties"].get(SANDBOX).is_some();
        if omitted == OmittedSandbox::Refused && takes_sandbox {
            if let Some(Value::Array(required)) = input.get_mut("required")
                && !required.iter().any(|name| name == SANDBOX)
            {
                required.push(SANDBOX.into());
            }
            input["properties"][SANDBOX]["description"] =
                "Id or name of the sandbox, as create_sandbox gave it.".into();
        }
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ToolName;

    #[test]
    fn every_tool_of_the_files_is_implemented_and_every_implementation_is_there() {
        let named: Vec<&str> = definitions()
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        for name in &named {
            assert!(ToolName::parse(name).is_some(), "{name} is not implemented");
        }
        for tool in ToolName::ALL {
            assert!(named.contains(&tool.as_str()), "{tool:?} is in no file");
        }
        assert_eq!(named.len(), ToolName::ALL.len(), "each name is there once");
    }

    #[test]
    fn the_shared_tools_are_those_of_the_sdks_with_a_sandbox() {
        let shared: Value = serde_json::from_str(SHARED).unwrap();
        for tool in shared["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            let mut ours = find(name).unwrap().input.clone();
            let properties = ours["properties"].as_object_mut().unwrap();
            assert!(properties.remove(SANDBOX).is_some(), "{name}");
            assert_eq!(Value::Object(ours), tool["input"], "{name}");
        }
    }

    #[test]
    fn without_a_default_the_sandbox_must_be_named() {
        for tool in definitions() {
            let own = tool.input_for(OmittedSandbox::Own);
            let absent = tool.input_for(OmittedSandbox::Refused);
            let is_required = |input: &JsonObject| {
                let required = input["required"].as_array().unwrap();
                required.contains(&json!(SANDBOX))
            };
            if own["properties"].get(SANDBOX).is_some() {
                assert!(is_required(&absent), "{}", tool.name);
            } else {
                assert_eq!(own, absent);
            }
            let listed = serde_json::to_value(tool.listed(OmittedSandbox::Own)).unwrap();
            assert_eq!(listed["annotations"]["readOnlyHint"], tool.read_only);
            assert_eq!(listed["annotations"]["destructiveHint"], tool.destructive);
        }
    }
}
