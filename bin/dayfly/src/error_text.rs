//! Failures in words: what, why, and what to do about it.

use dayfly_client::{ApiError, ClientError};
use dayfly_types::{ErrorCode, error_chain_once};
use serde::Serialize;

use crate::failure::{CommandError, Subject};
use crate::sandbox::prefixes::PrefixError;
use crate::{hint_words, text};

/// A failure with `--json`: the shape of the server's own errors.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorReport {
    pub(crate) error: String,
    /// The server's code; absent when it was not the server that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
}

/// Puts a failure into words that are safe to show.
pub(crate) fn report(error: &CommandError) -> ErrorReport {
    let api = api_error(error);
    let mut text = text::visible(&error_chain_once(error));
    let request_id = api
        .and_then(|api| api.request_id.as_deref())
        .map(text::visible);
    // For a fault of the server's, the id is what its operator needs.
    if let (Some(id), true) = (&request_id, api.is_some_and(|api| api.status >= 500)) {
        text.push_str(&format!(" (request {id})"));
    }
    ErrorReport {
        error: text,
        code: api
            .map(|api| text::visible(&api.code))
            .filter(|code| !code.is_empty()),
        hint: hint(error).map(|hint| text::visible(&hint)),
        request_id,
    }
}

fn api_error(error: &CommandError) -> Option<&ApiError> {
    match error {
        CommandError::Call {
            source: ClientError::Api(api),
            ..
        }
        | CommandError::Prefix(PrefixError::List {
            source: ClientError::Api(api),
            ..
        }) => Some(api),
        CommandError::Call { .. }
        | CommandError::TimedOut
        | CommandError::Usage { .. }
        | CommandError::Settings(_)
        | CommandError::Config(_)
        | CommandError::Prefix(_)
        | CommandError::Local { .. }
        | CommandError::Refused { .. }
        | CommandError::Output { .. }
        | CommandError::Interrupted { .. } => None,
    }
}

fn hint(error: &CommandError) -> Option<String> {
    match error {
        CommandError::Usage { hint, .. } | CommandError::Refused { hint, .. } => {
            Some((*hint).to_owned())
        }
        CommandError::Settings(error) => error.hint(),
        CommandError::Config(_) => Some("see --url and DAYFLY_API_URL, DAYFLY_API_KEY".to_owned()),
        CommandError::Prefix(error @ PrefixError::List { source, .. }) => {
            client_hint(source, Subject::Sandbox).or_else(|| Some(error.hint()))
        }
        CommandError::Prefix(error) => Some(error.hint()),
        CommandError::Call { source, about, .. } => client_hint(source, *about),
        CommandError::TimedOut => {
            Some("give it more with --timeout, such as --timeout 5m".to_owned())
        }
        CommandError::Local { .. }
        | CommandError::Output { .. }
        | CommandError::Interrupted { .. } => None,
    }
}

fn client_hint(error: &ClientError, about: Subject) -> Option<String> {
    let words = match error {
        ClientError::Api(api) => {
            let told = hint_words::for_command_line(&api.advice);
            return told.or_else(|| code_hint(api.known_code()?, about));
        }
        ClientError::Connect { .. } => {
            "is dayflyd running there? --url or DAYFLY_API_URL say where to look"
        }
        ClientError::Untrusted { .. } => {
            "give SSL_CERT_FILE the certificate of its authority, or add that to the system's"
        }
        ClientError::NoTls { .. } => "is it an http:// address? see --url and DAYFLY_API_URL",
        ClientError::OutcomeUnknown { .. } => {
            "the command may have run, in part or whole; look at what it did before running it again"
        }
        ClientError::Timeout { .. } | ClientError::Lost { .. } => {
            "the request may have been carried out; `dayfly ls` shows what exists"
        }
        ClientError::Protocol { .. } => {
            "is this the address of a Dayfly server? `dayfly version` compares the versions"
        }
        ClientError::InvalidName { .. } => {
            "`dayfly ls`, `template ls`, `snapshot ls` and `volume ls` show what there is"
        }
        ClientError::Upload { .. } => return None,
    };
    Some(words.to_owned())
}

/// For servers that give no hint of their own.
fn code_hint(code: ErrorCode, about: Subject) -> Option<String> {
    let words = if code == ErrorCode::Unauthorized {
        "the server does not know this key; check DAYFLY_API_KEY, or `dayfly login` again"
    } else if code == ErrorCode::NotFound {
        about.where_to_look()
    } else if code == ErrorCode::NoCapacity {
        "`dayfly node` shows the host's room, `dayfly rm` makes some"
    } else if code == ErrorCode::TemplateFailed || code == ErrorCode::TemplateBaking {
        "`dayfly template ls` shows why"
    } else {
        return None;
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use dayfly_api::Advice;

    use super::*;

    fn refused(message: &str, status: u16, hint: Option<&str>) -> CommandError {
        let api = ApiError {
            status,
            code: "not_found".to_owned(),
            message: message.to_owned(),
            advice: Advice {
                hint: hint.map(str::to_owned),
                ..Advice::default()
            },
            request_id: Some("req-1".to_owned()),
            retry_after: None,
            percent: None,
            health: None,
        };
        CommandError::call("cannot read sandbox sb-1", ClientError::Api(Box::new(api)))
    }

    #[test]
    fn what_then_why_each_once() {
        let report = report(&refused("no such sandbox", 404, None));
        assert_eq!(report.error, "cannot read sandbox sb-1: no such sandbox");
        assert_eq!(report.code.as_deref(), Some("not_found"));
        assert!(report.hint.unwrap().contains("dayfly ls"));
    }

    #[test]
    fn the_servers_hint_goes_first_and_its_words_cannot_steer_the_terminal() {
        let report = report(&refused("gone\x1b[2J", 500, Some("wait\x07")));
        assert_eq!(
            report.error,
            "cannot read sandbox sb-1: gone[2J (request req-1)"
        );
        assert_eq!(report.hint.as_deref(), Some("wait"));
    }
}
