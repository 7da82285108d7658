//! What a token says, and what is believed of it.

use dayfly_types::limits::PROVIDER_CLOCK_SKEW;
use jsonwebtoken::{Algorithm, Validation, get_current_timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::address::Issuer;

/// Somebody, as the provider calls them.
#[derive(Debug, Clone, PartialEq)]
pub struct Person {
    /// Never given to another, as a name or an address may be.
    pub subject: String,
    /// When the provider gave its word, in seconds since 1970.
    pub issued_at: u64,
    /// When that is over.
    pub expires_at: u64,
    claims: Map<String, Value>,
}

/// The names by which people know each other, the first that there is.
const NAMES: [&str; 3] = [EMAIL, "preferred_username", "name"];
const EMAIL: &str = "email";
/// Some providers say in the claims what kind of token it is.
const KIND: &str = "typ";
const ID_TOKEN: &str = "ID";
const NAME_CHARACTERS_MAX: usize = 128;

impl Person {
    /// Whether the provider says this of them: the claim is the text, or a list that has it.
    #[must_use]
    pub fn has(&self, claim: &str, value: &str) -> bool {
        match self.believed(claim) {
            Some(Value::String(text)) => text == value,
            Some(Value::Array(texts)) => texts.iter().any(|text| text == value),
            Some(_) | None => false,
        }
    }

    fn believed(&self, claim: &str) -> Option<&Value> {
        // An address that nobody has checked is what somebody typed.
        let is_believed = claim != EMAIL || self.has_checked_address();
        self.claims.get(claim).filter(|_| is_believed)
    }

    fn has_checked_address(&self) -> bool {
        self.claims.get("email_verified") == Some(&Value::Bool(true))
    }

    /// What they are called, for people who read lists. Not to decide by.
    #[must_use]
    pub fn name(&self) -> String {
        let named = |claim: &&str| self.believed(claim).and_then(Value::as_str);
        let name = NAMES.iter().find_map(named).unwrap_or(&self.subject);
        let name = name.chars().filter(|character| !character.is_control());
        name.take(NAME_CHARACTERS_MAX).collect()
    }
}

/// What of a token is looked at here. `jsonwebtoken` looks at times, issuer and audience too; it takes
/// a list of issuers, and any of several audiences.
#[derive(Debug, Deserialize)]
pub(crate) struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: u64,
    iat: u64,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// What is wrong with what a token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disbelief {
    Issuer,
    Audience,
    IssuedLater,
    NoSubject,
    NoIdToken,
}

/// What every token is held against.
pub(crate) fn validation(algorithm: Algorithm, issuer: &Issuer, client_id: &str) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&[issuer.as_str()]);
    validation.set_audience(&[client_id]);
    validation.validate_nbf = true;
    validation.leeway = PROVIDER_CLOCK_SKEW.as_secs();
    validation
}

impl Claims {
    /// # Errors
    /// [`Disbelief`].
    pub(crate) fn believed(self, issuer: &Issuer, client_id: &str) -> Result<Person, Disbelief> {
        if self.iss != issuer.as_str() {
            return Err(Disbelief::Issuer);
        }
        // Whoever else it is for could bring it here.
        let is_alone = match &self.aud {
            Audience::One(one) => one == client_id,
            Audience::Several(all) => matches!(all.as_slice(), [one] if one == client_id),
        };
        if !is_alone || self.azp.is_some_and(|azp| azp != client_id) {
            return Err(Disbelief::Audience);
        }
        if self.others.get(KIND).is_some_and(|kind| kind != ID_TOKEN) {
            return Err(Disbelief::NoIdToken);
        }
        if self.iat > get_current_timestamp() + PROVIDER_CLOCK_SKEW.as_secs() {
            return Err(Disbelief::IssuedLater);
        }
        if self.sub.is_empty() {
            return Err(Disbelief::NoSubject);
        }
        let mut claims = self.others;
        claims.insert("sub".to_owned(), Value::String(self.sub.clone()));
        Ok(Person {
            subject: self.sub,
            issued_at: self.iat,
            expires_at: self.exp,
            claims,
        })
    }
}
