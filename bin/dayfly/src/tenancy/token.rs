//! `dayfly token`.

use dayfly_api::{CreateToken, Token};
use dayfly_client::{ProjectChoice, RevokeOptions};
use serde_json::json;

use crate::dispatch::Session;
use crate::failure::{CommandError, Subject};
use crate::sandbox::prefixes;
use crate::table::Table;
use crate::tenancy::args::{ScopeArg, TokenCommand};
use crate::{exit_status, text};

pub(crate) async fn token(
    session: &Session<'_>,
    command: TokenCommand,
) -> Result<u8, CommandError> {
    match command {
        TokenCommand::Create {
            label,
            scope,
            sandbox,
            ttl,
            project,
        } => {
            let sandbox_id = match sandbox {
                Some(id) => Some(prefixes::resolve(&session.client, &id).await?),
                None => None,
            };
            let request = CreateToken {
                label,
                scopes: (!scope.is_empty()).then(|| scope.iter().map(|one| word(*one)).collect()),
                sandbox_id,
                expires_in_days: None,
                expires_in_seconds: ttl.map(|ttl| ttl.as_secs()),
            };
            create(session, project.as_deref(), &request).await
        }
        TokenCommand::Ls { whose } => list(session, &whose.choice()).await,
        TokenCommand::Rm {
            prefixes,
            descendants,
            project,
        } => {
            let options = RevokeOptions {
                project,
                descendants,
            };
            remove(session, &prefixes, &options).await
        }
    }
}

fn word(scope: ScopeArg) -> String {
    let word = match scope {
        ScopeArg::Read => "read",
        ScopeArg::Create => "create",
        ScopeArg::Exec => "exec",
        ScopeArg::Audit => "audit",
        ScopeArg::Admin => "admin",
        ScopeArg::Operator => "operator",
    };
    word.to_owned()
}

async fn create(
    session: &Session<'_>,
    project: Option<&str>,
    request: &CreateToken,
) -> Result<u8, CommandError> {
    let made = session.client.create_token(project, request).await;
    let made = made.map_err(|source| CommandError::call("cannot make a key", source))?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&made)?;
    } else {
        printer.line(&text::visible(&made.token))?;
        printer.note("keep it now: it is not shown again");
    }
    Ok(exit_status::OK)
}

async fn list(session: &Session<'_>, projects: &ProjectChoice) -> Result<u8, CommandError> {
    let tokens = session.client.tokens(projects).await;
    let tokens = tokens.map_err(|source| CommandError::call("cannot list keys", source))?;
    let printer = session.printer;
    if printer.is_json() {
        printer.json(&tokens)?;
        return Ok(exit_status::OK);
    }
    if printer.is_quiet() {
        let prefixes = tokens
            .iter()
            .map(|token| text::visible(&token.prefix) + "\n");
        printer.data(&prefixes.collect::<String>())?;
        return Ok(exit_status::OK);
    }
    let mut table = table(&tokens);
    if *projects == ProjectChoice::All {
        table.lead_with_projects(tokens.iter().map(|token| &token.project));
    }
    printer.table(&table)?;
    Ok(exit_status::OK)
}

fn table(tokens: &[Token]) -> Table {
    let mut table = Table::new(&[
        "PREFIX", "LABEL", "SCOPES", "SANDBOX", "CREATED", "EXPIRES", "MADE BY",
    ]);
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    for token in tokens {
        table.push(vec![
            token.prefix.clone(),
            token.label.clone(),
            token.scopes.join(","),
            or_none(&token.sandbox_id),
            token.created_at.clone(),
            or_none(&token.expires_at),
            or_none(&token.made_by),
        ]);
    }
    table
}

async fn remove(
    session: &Session<'_>,
    prefixes: &[String],
    options: &RevokeOptions,
) -> Result<u8, CommandError> {
    let mut revoked = Vec::new();
    let mut outcome = Ok(exit_status::OK);
    for prefix in prefixes {
        let what = || format!("cannot revoke key {}", text::visible(prefix));
        let done = session.client.revoke_token_with(prefix, options).await;
        if let Err(source) = done {
            outcome = Err(CommandError::call(what(), source).about(Subject::Key));
            break;
        }
        revoked.push(prefix);
    }
    // Also when the next one failed: these are over.
    if session.printer.is_json() {
        session.printer.json(&json!({"revoked": revoked}))?;
    }
    outcome
}
