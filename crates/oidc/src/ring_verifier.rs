//! Signatures, checked by the cryptography that everything else here uses.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature as of_ring;
use ring::signature::{RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};

/// Nothing is signed here, and of keys nothing is worked out: they come as numbers.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(unsupported()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes signatures checkable in this process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A second one is refused, and there is no other in our programs.
        let _ = RING.install_default();
    });
}

fn unsupported() -> Error {
    ErrorKind::UnsupportedAlgorithm.into()
}

struct RingVerifier {
    algorithm: Algorithm,
    key: VerifyingKey,
}

enum VerifyingKey {
    Rsa {
        numbers: RsaPublicKeyComponents<Vec<u8>>,
        parameters: &'static RsaParameters,
    },
    Curve(UnparsedPublicKey<Vec<u8>>),
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if algorithm.family() != key.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let curve = |parameters: &'static dyn of_ring::VerificationAlgorithm| {
        let point = key.try_get_as_bytes()?.to_vec();
        Ok(VerifyingKey::Curve(UnparsedPublicKey::new(
            parameters, point,
        )))
    };
    let rsa = |parameters: &'static RsaParameters| match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => Ok(VerifyingKey::Rsa {
            numbers: RsaPublicKeyComponents {
                n: n.clone(),
                e: e.clone(),
            },
            parameters,
        }),
        DecodingKeyKind::SecretOrDer(_) => Err(Error::from(ErrorKind::InvalidKeyFormat)),
    };
    // Of 2048 bits and more.
    let key = match algorithm {
        Algorithm::RS256 => rsa(&of_ring::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => rsa(&of_ring::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => rsa(&of_ring::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => rsa(&of_ring::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => rsa(&of_ring::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => rsa(&of_ring::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => curve(&of_ring::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => curve(&of_ring::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => curve(&of_ring::ED25519),
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 | _ => Err(unsupported()),
    }?;
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        key,
    }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match &self.key {
            VerifyingKey::Rsa {
                numbers,
                parameters,
            } => numbers.verify(parameters, message, signature),
            VerifyingKey::Curve(key) => key.verify(message, signature),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
