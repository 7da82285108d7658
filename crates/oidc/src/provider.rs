//! One provider, and what is remembered of it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dayfly_types::limits::{
    PROVIDER_DEADLINE, PROVIDER_KEYS_AGE_MAX, PROVIDER_REFRESH_PERIOD_MIN,
    PROVIDER_RETRY_PERIOD_MIN, PROVIDER_TOKEN_BYTES_MAX,
};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Header, decode, decode_header};
use reqwest::Client;
use tokio::sync::Mutex as AsyncMutex;

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
#[derive(Clone)]
pub struct Provider {
    shared: Arc<Shared>,
}

struct Shared {
    settings: ProviderSettings,
    http: Client,
    known: Mutex<Known>,
    /// Held by the one that asks.
    asking: AsyncMutex<()>,
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
        formatter
            .debug_struct("Provider")
            .field("issuer", self.issuer())
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
        let http = fetch::connector(settings.authority.as_deref())?;
        let shared = Shared {
            settings,
            http,
            known: Mutex::default(),
            asking: AsyncMutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.shared.settings.issuer
    }

    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.shared.settings.client_id
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
        let (issuer, client_id) = (self.issuer(), self.client_id());
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
        let endpoints = |offer: &Offer| offer.endpoints.clone();
        if let Some(found) = self.shared.known().young().map(endpoints) {
            return Ok(found);
        }
        self.ask().await?;
        let found = self.shared.known().young().map(endpoints);
        Ok(found.unwrap_or_default())
    }

    async fn key(&self, header: &Header) -> Result<DecodingKey, TokenRefusal> {
        if let Some(found) = self.shared.known().key(header) {
            return found;
        }
        self.ask().await?;
        let found = self.shared.known().key(header);
        found.unwrap_or(Err(TokenRefusal::UnknownKey))
    }

    /// Asks the provider, one at a time, to the end: whoever hangs up must not make us forget that it
    /// was asked.
    async fn ask(&self) -> Result<(), FetchError> {
        let (shared, began) = (Arc::clone(&self.shared), Instant::now());
        let asked = tokio::spawn(async move { shared.ask(began).await });
        asked.await.unwrap_or(Err(FetchError::Lately))
    }
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, began: Instant) -> Result<(), FetchError> {
        let _turn = self.asking.lock().await;
        {
            let known = self.known();
            let was_asked = known.asked_at.is_some_and(|at| at >= began);
            match known.has_failed {
                // Somebody else did, while this one waited.
                false if was_asked => return Ok(()),
                true if was_asked || known.has_failed_lately() => return Err(FetchError::Lately),
                false | true => {}
            }
        }
        let offer = fetch::offer(&self.http, &self.settings.issuer);
        let offer = tokio::time::timeout(PROVIDER_DEADLINE, offer).await;
        let offer = offer.unwrap_or(Err(FetchError::Slow));
        let mut known = self.known();
        known.asked_at = Some(Instant::now());
        known.has_failed = offer.is_err();
        known.offer = match offer {
            Ok(offer) => Some((offer, Instant::now())),
            // What was known stays for its time.
            Err(error) => return Err(error),
        };
        Ok(())
    }
}

impl Known {
    fn young(&self) -> Option<&Offer> {
        let (offer, read_at) = self.offer.as_ref()?;
        (read_at.elapsed() < PROVIDER_KEYS_AGE_MAX).then_some(offer)
    }

    /// The key of a token, or that there is none; nothing when the provider has to be asked.
    fn key(&self, header: &Header) -> Option<Result<DecodingKey, TokenRefusal>> {
        let found = self.young()?.keys.find(header);
        // It may have a new one. Whoever sends nonsense must not make us ask without end.
        let lately = |at: Instant| at.elapsed() < PROVIDER_REFRESH_PERIOD_MIN;
        match found {
            Some(key) => Some(Ok(key.clone())),
            None if self.asked_at.is_some_and(lately) => Some(Err(TokenRefusal::UnknownKey)),
            None => None,
        }
    }

    fn has_failed_lately(&self) -> bool {
        let lately = |at: Instant| at.elapsed() < PROVIDER_RETRY_PERIOD_MIN;
        self.has_failed && self.asked_at.is_some_and(lately)
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
            Disbelief::NoSubject | Disbelief::NoIdToken => Self::Incomplete,
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
