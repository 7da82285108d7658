//! Who may sign in, and as what: the operator's settings and nobody else say so.

use std::path::PathBuf;

use dayfly_oidc::{InvalidAuthority, Issuer, Person, Provider, ProviderSettings};
use dayfly_types::ProjectId;
use dayfly_types::limits::{
    PERSON_KEY_SECONDS_DEFAULT, PERSON_KEY_SECONDS_MAX, SIGN_IN_BYTES_MAX, SIGN_IN_GRANTS_MAX,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::tenancy::scope::Scope;

/// Why settings for signing in make no sense.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSignIn {
    #[error("it has at most {SIGN_IN_BYTES_MAX} bytes as JSON")]
    TooLong,
    #[error("it is not what is wanted")]
    Unreadable(#[source] serde_json::Error),
    #[error("client_id must not be empty")]
    NoClientId,
    #[error("there must be a grant, and at most {SIGN_IN_GRANTS_MAX}")]
    Grants,
    #[error("a grant needs a claim and a value")]
    EmptyGrant,
    #[error("scopes must have `openid` among them, each one word")]
    Scopes,
    #[error("key_seconds must be from 60 to {PERSON_KEY_SECONDS_MAX}")]
    KeySeconds,
}

/// How people sign in: by the tokens of one OpenID provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInSettings {
    pub issuer: Issuer,
    /// What this server is called at the provider; the audience of its tokens.
    pub client_id: String,
    /// A file with certificates of the provider's authority, beside those that the host trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
    /// How long a key of a person lasts at most. No longer than the provider's word in any case.
    #[serde(default = "key_seconds")]
    pub key_seconds: u64,
    /// What a client asks the provider for. Some have groups only under a scope of their own.
    #[serde(default = "scopes")]
    pub scopes: Vec<String>,
    /// People, by what the provider calls them (`sub`), who get nothing whatever else is said.
    #[serde(default)]
    pub denied: Vec<String>,
    pub grant: Vec<Grant>,
}

const fn key_seconds() -> u64 {
    PERSON_KEY_SECONDS_DEFAULT
}

fn scopes() -> Vec<String> {
    ["openid", "email", "profile"].map(str::to_owned).to_vec()
}

/// Everybody of whom the provider says this has a role in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Such as `groups`, `email` or `sub`.
    pub claim: String,
    pub value: String,
    pub project: ProjectId,
    pub role: Role,
}

/// What somebody may do in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// All that a project's own people do, keys and the audit record too.
    Owner,
    /// Make sandboxes and work in them.
    Developer,
    /// See what there is.
    Viewer,
    /// See what there is, and the audit record.
    Auditor,
}

impl Role {
    #[must_use]
    pub const fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Owner => &[Scope::Admin],
            Self::Developer => &[Scope::Create, Scope::Exec],
            Self::Viewer => &[Scope::Read],
            Self::Auditor => &[Scope::Audit],
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Developer => "developer",
            Self::Viewer => "viewer",
            Self::Auditor => "auditor",
        }
    }
}

impl SignInSettings {
    /// Reads what is written on the command line, or made of the file's table.
    ///
    /// # Errors
    /// [`InvalidSignIn`].
    pub fn parse(text: &str) -> Result<Self, InvalidSignIn> {
        if text.len() > SIGN_IN_BYTES_MAX {
            return Err(InvalidSignIn::TooLong);
        }
        let settings: Self = serde_json::from_str(text).map_err(InvalidSignIn::Unreadable)?;
        if settings.client_id.is_empty() {
            return Err(InvalidSignIn::NoClientId);
        }
        if !(1..=SIGN_IN_GRANTS_MAX).contains(&settings.grant.len()) {
            return Err(InvalidSignIn::Grants);
        }
        let is_empty = |grant: &Grant| grant.claim.is_empty() || grant.value.is_empty();
        if settings.grant.iter().any(is_empty) {
            return Err(InvalidSignIn::EmptyGrant);
        }
        let is_word = |scope: &String| !scope.is_empty() && !scope.contains(char::is_whitespace);
        let has_openid = settings.scopes.iter().any(|scope| scope == "openid");
        if !has_openid || !settings.scopes.iter().all(is_word) {
            return Err(InvalidSignIn::Scopes);
        }
        if !(60..=PERSON_KEY_SECONDS_MAX).contains(&settings.key_seconds) {
            return Err(InvalidSignIn::KeySeconds);
        }
        Ok(settings)
    }

    /// What a person has: the roles in each project, in the order of the settings.
    #[must_use]
    pub fn grants_of(&self, person: &Person) -> Vec<&Grant> {
        if self.denied.contains(&person.subject) {
            return Vec::new();
        }
        let is_theirs = |grant: &&Grant| person.has(&grant.claim, &grant.value);
        self.grant.iter().filter(is_theirs).collect()
    }

    /// Another one for every other setting: what was given under these ends with them.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        hex::encode(Sha256::digest(text))
    }
}

/// The settings, with what their files hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInConfig {
    pub settings: SignInSettings,
    /// Certificates of the provider's authority as PEM.
    pub authority: Option<Vec<u8>>,
}

impl SignInConfig {
    /// Whether it can be used; nobody is asked.
    ///
    /// # Errors
    /// What is wrong with the authority.
    pub fn check(&self) -> Result<(), InvalidAuthority> {
        Provider::new(self.provider()).map(|_| ())
    }

    pub(crate) fn provider(&self) -> ProviderSettings {
        ProviderSettings {
            issuer: self.settings.issuer.clone(),
            client_id: self.settings.client_id.clone(),
            authority: self.authority.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenancy::scope::Scopes;

    const TEXT: &str = r#"{"issuer":"https://id.example","client_id":"dayfly","grant":[
        {"claim":"groups","value":"ml","project":"ml","role":"developer"}]}"#;

    #[test]
    fn settings_are_read_and_what_is_not_known_is_refused() {
        let settings = SignInSettings::parse(TEXT).unwrap();
        assert_eq!(settings.key_seconds, PERSON_KEY_SECONDS_DEFAULT);
        assert_eq!(settings.grant[0].role, Role::Developer);
        let again = serde_json::to_string(&settings).unwrap();
        assert_eq!(SignInSettings::parse(&again).unwrap(), settings);
        for wrong in [
            TEXT.replace("developer", "operator"),
            TEXT.replace("developer", "admin"),
            TEXT.replace("\"claim\"", "\"claims\""),
            TEXT.replace("https://id.example", "http://id.example"),
            TEXT.replace("\"dayfly\"", "\"\""),
            TEXT.replace("\"value\":\"ml\"", "\"value\":\"\""),
            TEXT.replace("\"project\":\"ml\"", "\"project\":\"No Project\""),
            TEXT.replace("\"grant\"", "\"scopes\":[\"email\"],\"grant\""),
            TEXT.replace("\"grant\"", "\"scopes\":[\"openid a\"],\"grant\""),
            TEXT.replace("\"grant\"", "\"key_seconds\":59,\"grant\""),
            TEXT.replace("\"grant\"", "\"key_seconds\":86401,\"grant\""),
            r#"{"issuer":"https://id.example","client_id":"dayfly","grant":[]}"#.to_owned(),
        ] {
            assert!(SignInSettings::parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_other_setting_has_another_digest() {
        let settings = SignInSettings::parse(TEXT).unwrap();
        assert_eq!(settings.digest(), settings.clone().digest());
        let mut other = settings.clone();
        other.denied.push("somebody".to_owned());
        assert_ne!(settings.digest(), other.digest());
    }

    #[test]
    fn a_role_is_no_more_than_it_says() {
        let words = |role: Role| Scopes::from_iter(role.scopes().iter().copied()).to_string();
        assert_eq!(words(Role::Owner), "read create exec audit admin");
        assert_eq!(words(Role::Developer), "read create exec");
        assert_eq!(words(Role::Viewer), "read");
        assert_eq!(words(Role::Auditor), "read audit");
    }
}
