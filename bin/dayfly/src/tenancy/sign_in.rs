//! `dayfly login --sso`: a key for a person, by the word of the server's OpenID provider.

use std::io::{self, Read as _};
use std::path::Path;

use dayfly_client::api::SignInRequest;
use dayfly_client::{Client, ClientConfig, DeviceError, DeviceLogin};

use crate::failure::CommandError;
use crate::printer::Printer;
use crate::tenancy::args::LoginArgs;
use crate::text;

/// Longer than the server takes.
const TOKEN_BYTES_MAX: u64 = 64 << 10;

impl LoginArgs {
    /// Whether a person signs in, and no key is asked for.
    pub(crate) fn is_by_provider(&self) -> bool {
        self.sso || self.id_token_file.is_some()
    }
}

/// A key of the server, for whoever the provider says that this is.
pub(crate) async fn key(
    server: &str,
    args: &LoginArgs,
    printer: &Printer,
) -> Result<String, CommandError> {
    let config = ClientConfig {
        url: server.trim_end_matches('/').to_owned(),
        key: None,
    };
    if !config.is_private() {
        return Err(CommandError::Usage {
            what: "signing in needs https, except to a server on this host".to_owned(),
            hint: "an ID token in clear would let anybody in who sees it",
        });
    }
    let client = Client::new(config)?;
    let id_token = match &args.id_token_file {
        Some(path) => read_token(path)?,
        None => by_code(&client, printer).await?,
    };
    let request = SignInRequest {
        id_token,
        project: args.project.clone(),
    };
    let made = client.sign_in(&request).await;
    let made = made.map_err(|source| CommandError::call("cannot sign in", source))?;
    if let Some(until) = &made.token_info.expires_at {
        let name = text::visible(&made.token_info.label);
        let until = text::visible(until);
        printer.note(&format!("signed in as {name} until {until}"));
    }
    Ok(made.token)
}

/// By a code that somebody enters in a browser.
async fn by_code(client: &Client, printer: &Printer) -> Result<String, CommandError> {
    let offer = client.sign_in_offer().await;
    let offer = offer
        .map_err(|source| CommandError::call("cannot learn who signs people in here", source))?;
    let failed = |source: DeviceError| {
        let hint = match source {
            DeviceError::NotOffered => {
                "get an ID token another way, and give it with --id-token-file"
            }
            DeviceError::Expired => "`dayfly login URL --sso` again gives a new code",
            DeviceError::Address { .. }
            | DeviceError::Http(_)
            | DeviceError::Unreachable { .. }
            | DeviceError::Protocol { .. }
            | DeviceError::Refused { .. } => {
                "ask the operator of the server whether its sign_in settings are right"
            }
        };
        let what = described(&source);
        CommandError::Refused { what, hint }
    };
    let (issuer, client_id) = (
        text::visible(&offer.issuer),
        text::visible(&offer.client_id),
    );
    printer.note(&format!("signing in with {issuer} for {client_id}"));
    let login = DeviceLogin::begin(&offer).await.map_err(failed)?;
    let (page, complete) = login.pages();
    let code = text::visible(login.user_code());
    printer.note(&format!(
        "open {} and enter the code {code}",
        text::visible(page)
    ));
    if let Some(complete) = complete {
        printer.note(&format!("or open {}", text::visible(complete)));
    }
    login.id_token().await.map_err(failed)
}

fn described(error: &DeviceError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn read_token(path: &Path) -> Result<String, CommandError> {
    let failed = |source| CommandError::local("cannot read the ID token", source);
    let mut found = String::new();
    if path == Path::new("-") {
        let mut input = io::stdin().lock().take(TOKEN_BYTES_MAX);
        input.read_to_string(&mut found).map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut file = file.take(TOKEN_BYTES_MAX);
        file.read_to_string(&mut found).map_err(failed)?;
    }
    Ok(found.trim().to_owned())
}
