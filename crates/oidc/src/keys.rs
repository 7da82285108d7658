//! What a provider signs with.

use dayfly_types::limits::PROVIDER_KEYS_MAX;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header};
use serde::Deserialize;
use serde_json::Value;

/// The keys of a provider that can be used here.
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<SigningKey>);

#[derive(Debug)]
struct SigningKey {
    id: Option<String>,
    /// For which it may be used. Never a shared secret: a public key taken for one would let
    /// everybody sign.
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads what the provider publishes. A key that is not understood is left out, as those for
    /// other uses are.
    pub(crate) fn read(text: &[u8]) -> Result<Self, serde_json::Error> {
        let document: Document = serde_json::from_slice(text)?;
        let keys = document.keys.into_iter().filter_map(signing_key);
        Ok(Self(keys.take(PROVIDER_KEYS_MAX).collect()))
    }

    /// The one key that a token of this header can have been signed with.
    pub(crate) fn find(&self, header: &Header) -> Option<&DecodingKey> {
        let fits = |key: &&SigningKey| {
            let is_named = header.kid.is_none() || key.id == header.kid;
            is_named && key.algorithms.contains(&header.alg)
        };
        let mut found = self.0.iter().filter(fits);
        let first = found.next()?;
        // Without a name, or with one that two have, it would be a guess.
        found.next().is_none().then_some(&first.key)
    }
}

fn signing_key(value: Value) -> Option<SigningKey> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    if !matches!(
        jwk.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    ) {
        return None;
    }
    let of_kind: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => &[
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            EllipticCurve::P521 | EllipticCurve::Ed25519 | _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            &[Algorithm::EdDSA]
        }
        AlgorithmParameters::OctetKeyPair(_)
        | AlgorithmParameters::OctetKey(_)
        | AlgorithmParameters::Other(_)
        | _ => return None,
    };
    // What the provider says that it is for.
    let named = jwk.common.key_algorithm;
    let named = named.map(|named| Algorithm::try_from(named).ok());
    let algorithms = of_kind.iter().copied();
    let algorithms = algorithms.filter(|one| named.is_none_or(|named| named == Some(*one)));
    Some(SigningKey {
        algorithms: algorithms.collect(),
        key: DecodingKey::from_jwk(&jwk).ok()?,
        id: jwk.common.key_id,
    })
}
