//! What to do about an error or a result: a code for programs, and words for people with curl.
//!
//! A client words a hint for its own user, by the code and the parameters; one that does not know
//! the code shows the words that came with it, which name requests of this API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! hints {
    ($($variant:ident $({ $($parameter:ident),+ })? = $word:literal, $text:literal;)*) => {
        /// Which hint it is, as a word that programs may match. Once released it is never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum HintCode {
            $($variant,)*
        }

        impl HintCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }

            /// The words for users of REST. `{name}` stands for a parameter.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// What its words need.
            #[must_use]
            pub const fn parameters(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($(stringify!($parameter)),+)?],)* }
            }
        }

        /// A hint of the server, with what its words need.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Hint {
            $($variant $({ $($parameter: String),+ })?,)*
        }

        impl Hint {
            #[must_use]
            pub const fn code(&self) -> HintCode {
                match self { $(Self::$variant $({ $($parameter: _),+ })? => HintCode::$variant,)* }
            }

            #[must_use]
            pub fn parameters(&self) -> BTreeMap<String, String> {
                match self {
                    $(Self::$variant $({ $($parameter),+ })? => BTreeMap::from([
                        $($((stringify!($parameter).to_owned(), $parameter.clone())),+)?
                    ]),)*
                }
            }
        }
    };
}

hints! {
    SendKey = "send_key", "send the header `Authorization: Bearer <key>`";
    KeyPermissions = "key_permissions", "GET /v1/me says what this key may be used for";
    KeyScopes = "key_scopes", "GET /v1/me says which scopes this key has";
    KeyEnded = "key_ended", "what was begun before may go on; look at it with another key";
    RevokeKeys = "revoke_keys", "revoke keys that nobody uses any more";
    RevokeFileLinks = "revoke_file_links",
        "those that are not used any more can be revoked among the keys";
    RevokePortLinks = "revoke_port_links", "revoke some, or wait until they expire";
    Quota = "quota",
        "delete what is not needed, or ask the operator for more; GET /v1/usage shows it";
    MakeRoom = "make_room", "delete snapshots, volumes or hibernated sandboxes to make room";
    ServerHealth = "server_health",
        "ask again; if it stays so, GET /health says what the operator can do";
    HealthRemedy { remedy } = "health_remedy", "{remedy}";
    KnownNames { names } = "known_names", "known here: {names}";
    NoNames { kind } = "no_names", "this request takes no {kind} here";
    MetadataExample = "metadata_example", r#"such as metadata={"task":"7"}, percent-encoded"#;
    TimeExample = "time_example", "such as 2026-01-31T12:00:00Z; a + is sent as %2B";
    NewIdempotencyKey = "new_idempotency_key", "use a new Idempotency-Key for a new request";
    SandboxStatus = "sandbox_status",
        "look at the sandbox's status: resume a paused one, delete a failed one";
    SandboxNameTaken = "sandbox_name_taken",
        "use that one by its name, delete it, or choose another name";
    TemplateBaking = "template_baking", "nothing was created; ask again later";
    TemplateFailed { template } = "template_failed", "GET /v1/templates/{template} says why";
    SnapshotNameTaken = "snapshot_name_taken",
        "choose another name, or delete that snapshot first; what was made from it stays";
    SnapshotCorrupt = "snapshot_corrupt", "delete this snapshot and take a new one";
    SnapshotUnfit = "snapshot_unfit",
        "a create from a snapshot with disk_only still has its files, and can be snapshotted";
    ForkWider = "fork_wider",
        "name less, or leave network and egress_allowlist out to give it the same";
    PromoteChild = "promote_child", "only what a fork made can be promoted";
    TreeOfChild = "tree_of_child", "leave tree_id out, or send the child's own fork_tree_id";
    VolumeUsers = "volume_users", "the list of volumes shows which sandboxes have it";
    GrowVolume { volume } = "grow_volume", "PATCH /v1/volumes/{volume} makes it larger";
    SmallerVolume = "smaller_volume", "make a smaller volume and copy what you need";
    OutputKept { exec_id } = "output_kept", "its output is kept: GET processes/{exec_id}/output";
    SilentCommand = "silent_command", "the command succeeded and printed nothing";
    OutOfMemory { memory_mb } = "out_of_memory",
        "the command was ended because the sandbox has no memory left: it has {memory_mb} MiB in all; use less at once, or a template with more";
    NoMemoryLeft = "no_memory_left",
        "the command was ended because the sandbox has no memory left";
    NetworkDenied { sandbox_id, denied, first } = "network_denied",
        "the network policy of this sandbox denied {denied}; `dayfly net allow {sandbox_id} {first}` or POST .../network/allow lets it through";
    NetworkChanged = "network_changed",
        "look at GET .../network, and send the change again if it is still wanted";
    NetworkNotWidened = "network_not_widened", "send it again; GET .../network shows what holds";
    ContextBusy = "context_busy",
        "interrupt the context, or run the code in a context of its own";
    ContextRestarted = "context_restarted",
        "it did not stop by itself: the context was started anew, without its state";
    StateLost = "state_lost",
        "the interpreter of this context had ended and was started anew: variables and imports of before are gone";
    SilentCode = "silent_code",
        "the code ran and printed nothing; print a value, or make it the last expression, to see it";
    EnvironmentOfSandbox = "environment_of_sandbox",
        "an interpreter has the environment variables of its sandbox: give env to the create, the fork or the wake of the sandbox and restart the context, or set them in code";
    PortClosed = "port_closed", "send the project's key, or ask its owner for a link";
    NothingListens = "nothing_listens",
        "start the service, or look at GET .../ports for what listens";
    PortTimeout = "port_timeout",
        "GET .../ports says what listens, and the output of the service why it does not";
}

impl Hint {
    /// In words for users of REST.
    #[must_use]
    pub fn text(&self) -> String {
        fill(self.code().words(), &self.parameters())
    }
}

/// Puts parameters where words have `{name}`.
#[must_use]
pub fn fill(words: &str, parameters: &BTreeMap<String, String>) -> String {
    let mut text = String::with_capacity(words.len());
    let mut rest = words;
    // One pass, so that nothing is put into what a parameter brought.
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        let parameter = behind
            .split_once('}')
            .and_then(|(name, after)| Some((parameters.get(name)?, after)));
        match parameter {
            Some((value, after)) => {
                text.push_str(value);
                rest = after;
            }
            None => {
                text.push('{');
                rest = behind;
            }
        }
    }
    text.push_str(rest);
    text
}

/// The hint of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Advice {
    /// What to do about it, in words for users of REST.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Which hint it is: one of `HintCode`, or one that only a later server has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint_code: Option<String>,
    /// What the words of that hint need, such as the name of a template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hint_parameters: BTreeMap<String, String>,
}

impl Advice {
    /// The code, if this version knows it.
    #[must_use]
    pub fn known_code(&self) -> Option<HintCode> {
        HintCode::parse(self.hint_code.as_deref()?)
    }
}

impl From<Hint> for Advice {
    fn from(hint: Hint) -> Self {
        Self {
            hint: Some(hint.text()),
            hint_code: Some(hint.code().as_str().to_owned()),
            hint_parameters: hint.parameters(),
        }
    }
}

impl From<Option<Hint>> for Advice {
    fn from(hint: Option<Hint>) -> Self {
        hint.map(Self::from).unwrap_or_default()
    }
}

impl ToSchema for HintCode {}

impl PartialSchema for HintCode {
    fn schema() -> RefOr<Schema> {
        let words = |code: &HintCode| (code.as_str().to_owned(), Value::from(code.words()));
        let words: Map<String, Value> = HintCode::ALL.iter().map(words).collect();
        let extensions = ExtensionsBuilder::new().add("x-enumDescriptions", words);
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(HintCode::ALL.iter().map(|code| code.as_str())))
            .description(Some(
                "The codes of hints. A later server may have more: show `hint` for those.",
            ))
            .extensions(Some(extensions.build()))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_words_and_read_back() {
        for code in HintCode::ALL {
            let word = code.as_str();
            let is_plain = |letter: char| letter.is_ascii_lowercase() || letter == '_';
            assert!(word.chars().all(is_plain), "{word}");
            assert_eq!(HintCode::parse(word), Some(*code));
        }
        assert_eq!(HintCode::parse("of_a_later_server"), None);
    }

    #[test]
    fn words_name_each_parameter_and_nothing_else() {
        for code in HintCode::ALL {
            let mark = |name: &&str| ((*name).to_owned(), "@".to_owned());
            let parameters: BTreeMap<String, String> = code.parameters().iter().map(mark).collect();
            let text = fill(code.words(), &parameters);
            assert_eq!(text.matches('@').count(), parameters.len(), "{text}");
            let mut braces = text.split('{').skip(1);
            let is_name = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_lowercase());
            assert!(!braces.any(is_name), "{text}");
        }
    }

    #[test]
    fn a_parameter_goes_where_it_is_named_and_brings_no_others() {
        let hint = Hint::NetworkDenied {
            sandbox_id: "sb-1".to_owned(),
            denied: "{first} (no_rule)".to_owned(),
            first: "a.test".to_owned(),
        };
        let text = hint.text();
        assert!(text.contains("denied {first} (no_rule); "), "{text}");
        assert!(text.contains("`dayfly net allow sb-1 a.test`"), "{text}");
        let braces = Hint::MetadataExample.text();
        assert!(braces.contains(r#"{"task":"7"}"#), "{braces}");
    }

    #[test]
    fn an_older_server_sends_no_code_and_a_later_one_may_send_others() {
        let older: Advice = serde_json::from_str(r#"{"hint":"wait"}"#).unwrap();
        assert_eq!(
            (older.hint.as_deref(), older.known_code()),
            (Some("wait"), None)
        );
        let later = r#"{"hint":"wait","hint_code":"of_a_later_server"}"#;
        let later: Advice = serde_json::from_str(later).unwrap();
        assert_eq!(later.known_code(), None);
        assert_eq!(serde_json::to_string(&Advice::default()).unwrap(), "{}");
    }
}
