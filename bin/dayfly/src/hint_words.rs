//! Hints of the server, which speak of HTTP, in the words of the command line.

use dayfly_api::hint::fill;
use dayfly_api::{Advice, HintCode};

/// Says a hint of the server for somebody who types commands. One that this version does not know,
/// or of a server that sends no codes, is shown as it came.
pub(crate) fn for_command_line(advice: &Advice) -> Option<String> {
    let words = advice.known_code().and_then(words);
    let worded = words.map(|words| fill(words, &advice.hint_parameters));
    worded.or_else(|| advice.hint.clone())
}

/// The words for a code; nothing where those of the server fit a command line.
fn words(code: HintCode) -> Option<&'static str> {
    let words = match code {
        HintCode::SendKey => "give a key with DAYFLY_API_KEY, --key-file or `dayfly login`",
        HintCode::KeyPermissions => "`dayfly whoami` says what this key may be used for",
        HintCode::KeyScopes => "`dayfly whoami` says which scopes this key has",
        HintCode::Quota => {
            "delete what is not needed, or ask the operator for more; `dayfly project usage` shows it"
        }
        HintCode::ServerHealth => {
            "run the command again; if it stays so, `dayfly version` says what the operator can do"
        }
        HintCode::MetadataExample => "such as --metadata task=7",
        HintCode::TimeExample => "such as 2026-01-31T12:00:00Z",
        HintCode::NewIdempotencyKey => "run the command again",
        HintCode::TemplateBaking => "nothing was created; run the command again later",
        HintCode::TemplateFailed => "`dayfly template info {template}` says why",
        HintCode::ForkWider => "name less, or leave --network and --allow out to give it the same",
        HintCode::TreeOfChild => "leave --tree out, or give the child's own tree",
        HintCode::GrowVolume => "`dayfly volume grow {volume} SIZE` makes it larger",
        HintCode::OutputKept => "its output is kept: `dayfly logs ID {exec_id}`",
        HintCode::NetworkDenied => {
            "the network policy of this sandbox denied {denied}; `dayfly net allow {sandbox_id} {first}` lets it through"
        }
        HintCode::NetworkChanged => {
            "look at `dayfly net show ID`, and run the command again if the change is still wanted"
        }
        HintCode::NetworkNotWidened => {
            "run the command again; `dayfly net show ID` shows what holds"
        }
        HintCode::NothingListens => {
            "start the service, or look at `dayfly port ls ID` for what listens"
        }
        HintCode::PortTimeout => {
            "`dayfly port ls ID` says what listens, and `dayfly logs ID EXEC` why it does not"
        }
        HintCode::KeyEnded
        | HintCode::RevokeKeys
        | HintCode::RevokeFileLinks
        | HintCode::RevokePortLinks
        | HintCode::MakeRoom
        | HintCode::HealthRemedy
        | HintCode::KnownNames
        | HintCode::NoNames
        | HintCode::SandboxStatus
        | HintCode::SandboxNameTaken
        | HintCode::SnapshotNameTaken
        | HintCode::SnapshotCorrupt
        | HintCode::SnapshotUnfit
        | HintCode::PromoteChild
        | HintCode::VolumeUsers
        | HintCode::SmallerVolume
        | HintCode::SilentCommand
        | HintCode::OutOfMemory
        | HintCode::NoMemoryLeft
        | HintCode::ContextBusy
        | HintCode::ContextRestarted
        | HintCode::StateLost
        | HintCode::SilentCode
        | HintCode::EnvironmentOfSandbox
        | HintCode::PortClosed => return None,
    };
    Some(words)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory;
    use dayfly_api::Hint;

    use super::*;
    use crate::args::Args;

    /// Words of HTTP, which nobody types.
    const FOREIGN: [&str; 8] = [
        "GET ",
        "PUT ",
        "POST ",
        "PATCH ",
        "DELETE ",
        "/v1/",
        "Bearer",
        "Idempotency-Key",
    ];

    #[test]
    fn no_hint_is_in_words_of_http_and_each_command_in_one_exists() {
        for code in HintCode::ALL {
            let words = words(*code).unwrap_or_else(|| code.words());
            assert!(!FOREIGN.iter().any(|word| words.contains(word)), "{words}");
            for command in words.split('`').skip(1).step_by(2) {
                let mut known = Args::command();
                let verbs = command.split(' ').skip(1);
                for verb in verbs.take_while(|word| word.chars().all(|c| c.is_ascii_lowercase())) {
                    let next = known.find_subcommand(verb).cloned();
                    known = next.unwrap_or_else(|| panic!("`{command}` is no command"));
                }
            }
        }
    }

    #[test]
    fn words_name_only_what_the_server_sends() {
        for code in HintCode::ALL {
            let names = code.parameters().iter();
            let sent: BTreeMap<String, String> = names
                .map(|name| ((*name).to_owned(), String::new()))
                .collect();
            let filled = fill(words(*code).unwrap_or_default(), &sent);
            assert!(!filled.contains('{'), "{filled}");
        }
    }

    #[test]
    fn a_known_code_goes_before_the_words_that_came_with_it() {
        let template = "tools".to_owned();
        let failed = Advice::from(Hint::TemplateFailed { template });
        assert_eq!(
            for_command_line(&failed).as_deref(),
            Some("`dayfly template info tools` says why")
        );
        let later = Advice {
            hint_code: Some("of_a_later_server".to_owned()),
            ..failed
        };
        assert_eq!(for_command_line(&later), later.hint);
        assert_eq!(for_command_line(&Advice::default()), None);
    }
}
