//! One provider, and what is remembered of it.

use std::fmt;
use std::time::{Duration, Instant};

use dayfly_types::limits::{
    PROVIDER_KEYS_AGE_MAX, PROVIDER_REFRESH_PERIOD_MIN, PROVIDER_RETRY_PERIOD_MIN,
    PROVIDER_TOKEN_BYTES_MAX,
};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Header, decode, decode_header};
use reqwest::Client;
use tokio::sync::Mutex;

use crate::address::Issuer;
use crate::claims::{Claims, Disbelief, Person, validation};
use crate::fetch::{self, Endpoints, FetchError, InvalidAuthority, Offer};
use crate::ring_verifier;

/// Which provider, and what we are called there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    pub issuer: Issuer,
    /// The audience of its tokens.
    pub client_id: String,
    /// Certificates of its authority as PEM, beside those that the host trusts.
    pub authority: Option<Vec<u8>>,
}

/// Why a token is not taken.
#[derive(Debug, thiserror::Error)]
pub enum TokenRefusal {
    #[error("it is longer than {PROVIDER_TOKEN_BYTES_MAX} bytes")]
    TooLong,
    #[error("it is no signed token")]
    NoToken,
    #[error("it is signed in a way that is not taken")]
    Algorithm,
    #[error("it is signed with a key that the provider does not have")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet; is the clock of this host right?")]
    NotYet,
    #[error("it is from another issuer")]
    Issuer,
    #[error("it is for somebody else: its audience is not this server's client id")]
    Audience,
    #[error("it lacks what an ID token has, or has it in another form")]
    Incomplete,
    #[error("the provider cannot be asked")]
    Provider(#[from] FetchError),
}

/// An OpenID provider.
pub struct Provider {
    settings: ProviderSettings,
    http: Client,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    offer: Option<(Offer, Instant)>,
    /// When it was asked last, in vain or not.
    asked_at: Option<Instant>,
    has_failed: bool,
}

impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuer = &self.settings.issuer;
        formatter
            .debug_struct("Provider")
            .field("issuer", issuer)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// One that is asked when it is first needed.
    ///
    /// # Errors
    /// [`InvalidAuthority`].
    pub fn new(settings: ProviderSettings) -> Result<Self, InvalidAuthority> {
        ring_verifier::install();
        Ok(Self {
            http: fetch::connector(settings.authority.as_deref())?,
            settings,
            known: Mutex::default(),
        })
    }

    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.settings.issuer
    }

    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.settings.client_id
    }

    /// Who it is that a token was made for.
    ///
    /// # Errors
    /// [`TokenRefusal`].
    pub async fn verify(&self, token: &str) -> Result<Person, TokenRefusal> {
        if token.len() > PROVIDER_TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLong);
        }
        let header = decode_header(token).map_err(|_| TokenRefusal::NoToken)?;
        check_header(&header)?;
        let key = self.key(&header).await?;
        let (issuer, client_id) = (&self.settings.issuer, &self.settings.client_id);
        let validation = validation(header.alg, issuer, client_id);
        let decoded = decode::<Claims>(token, &key, &validation);
        let claims = decoded.map_err(|error| refused(error.kind()))?.claims;
        Ok(claims.believed(issuer, client_id)?)
    }

    /// Where people's clients ask it.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn endpoints(&self) -> Result<Endpoints, FetchError> {
        let mut known = self.known.lock().await;
        if known.young(PROVIDER_KEYS_AGE_MAX).is_none() {
            known.ask(self).await?;
        }
        let offer = known.young(PROVIDER_KEYS_AGE_MAX);
        Ok(offer.map_or_else(Endpoints::default, |offer| offer.endpoints.clone()))
    }

    /// The key of a token. Others wait while the provider is asked: it is asked once.
    async fn key(&self, header: &Header) -> Result<DecodingKey, TokenRefusal> {
        let mut known = self.known.lock().await;
        if let Some(offer) = known.young(PROVIDER_KEYS_AGE_MAX) {
            if let Some(key) = offer.keys.find(header) {
                return Ok(key.clone());
            }
            // It may have a new one. Whoever sends nonsense must not make us ask without end.
            if !known.may_be_asked() {
                return Err(TokenRefusal::UnknownKey);
            }
        }
        known.ask(self).await?;
        let offer = known.young(PROVIDER_KEYS_AGE_MAX);
        let key = offer.and_then(|offer| offer.keys.find(header));
        key.cloned().ok_or(TokenRefusal::UnknownKey)
    }
}

impl Known {
    fn young(&self, age_max: Duration) -> Option<&Offer> {
        let (offer, read_at) = self.offer.as_ref()?;
        (read_at.elapsed() < age_max).then_some(offer)
    }

    fn may_be_asked(&self) -> bool {
        let asked_at = self.asked_at;
        asked_at.is_none_or(|at| at.elapsed() >= PROVIDER_REFRESH_PERIOD_MIN)
    }

    async fn ask(&mut self, provider: &Provider) -> Result<(), FetchError> {
        // Whoever waited while somebody else asked in vain need not ask as well.
        let failed_at = self.asked_at.filter(|_| self.has_failed);
        if failed_at.is_some_and(|at| at.elapsed() < PROVIDER_RETRY_PERIOD_MIN) {
            return Err(FetchError::Lately);
        }
        self.has_failed = true;
        let offer = fetch::offer(&provider.http, &provider.settings.issuer).await;
        self.asked_at = Some(Instant::now());
        let offer = offer?;
        self.offer = Some((offer, Instant::now()));
        self.has_failed = false;
        Ok(())
    }
}

fn check_header(header: &Header) -> Result<(), TokenRefusal> {
    // An access token may have the same issuer and key, and says something else.
    let is_plain = header
        .typ
        .as_deref()
        .is_none_or(|typ| typ.eq_ignore_ascii_case("JWT"));
    // What must be understood and is not understood here.
    let is_understood = header.crit.is_none() && header.enc.is_none() && header.zip.is_none();
    let is_by_public_key = !matches!(
        header.alg,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    );
    match (is_plain && is_understood, is_by_public_key) {
        (false, _) => Err(TokenRefusal::NoToken),
        (true, false) => Err(TokenRefusal::Algorithm),
        (true, true) => Ok(()),
    }
}

impl From<Disbelief> for TokenRefusal {
    fn from(disbelief: Disbelief) -> Self {
        match disbelief {
            Disbelief::Issuer => Self::Issuer,
            Disbelief::Audience => Self::Audience,
            Disbelief::IssuedLater => Self::NotYet,
            Disbelief::NoSubject => Self::Incomplete,
        }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else is wrong with a token, it is none"
)]
fn refused(kind: &ErrorKind) -> TokenRefusal {
    match kind {
        ErrorKind::InvalidSignature => TokenRefusal::Signature,
        ErrorKind::InvalidAlgorithm
        | ErrorKind::InvalidAlgorithmName
        | ErrorKind::UnsupportedAlgorithm => TokenRefusal::Algorithm,
        ErrorKind::ExpiredSignature => TokenRefusal::Expired,
        ErrorKind::ImmatureSignature => TokenRefusal::NotYet,
        ErrorKind::InvalidIssuer => TokenRefusal::Issuer,
        ErrorKind::InvalidAudience => TokenRefusal::Audience,
        ErrorKind::MissingRequiredClaim(_)
        | ErrorKind::InvalidClaimFormat(_)
        | ErrorKind::Json(_) => TokenRefusal::Incomplete,
        _ => TokenRefusal::NoToken,
    }
}
