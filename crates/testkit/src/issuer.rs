//! An OpenID provider on loopback that signs real tokens, and anything else that is asked of it.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "what cannot be set up is a failed test"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub const CLIENT_ID: &str = "dayfly";

pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// What a token is signed with.
#[derive(Debug, Clone, Copy)]
pub enum Signing {
    P256,
    Edwards,
}

#[derive(Debug)]
struct Published {
    name: Mutex<String>,
    at: String,
    keys: Value,
    asked: AtomicUsize,
}

/// A provider. It ends with the runtime that it was started in.
#[derive(Debug)]
pub struct TestIssuer {
    published: Arc<Published>,
    p256: EcdsaKeyPair,
    edwards: Ed25519KeyPair,
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl TestIssuer {
    pub async fn start() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let p256 = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let edwards = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let point = p256.public_key().as_ref();
        let published = Arc::new(Published {
            name: Mutex::new(at.clone()),
            keys: json!({"keys": [
                {"kty": "EC", "crv": "P-256", "kid": "p256", "use": "sig", "alg": "ES256",
                    "x": encoded(&point[1..33]), "y": encoded(&point[33..])},
                {"kty": "OKP", "crv": "Ed25519", "kid": "edwards",
                    "x": encoded(edwards.public_key())},
                {"kty": "oct", "kid": "shared", "k": encoded("secret"), "alg": "HS256"},
                {"kty": "EC", "crv": "P-256", "kid": "for-secrets", "use": "enc",
                    "x": encoded(&point[1..33]), "y": encoded(&point[33..])},
                {"kty": "something-new", "kid": "new"},
            ]}),
            asked: AtomicUsize::new(0),
            at,
        });
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .with_state(Arc::clone(&published));
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            published,
            p256,
            edwards,
        }
    }

    /// Its name, which is also its address.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.published.at
    }

    /// How often it was asked what it offers.
    pub fn asked(&self) -> usize {
        self.published.asked.load(Ordering::Relaxed)
    }

    pub fn calls_itself(&self, name: &str) {
        *self.published.name.lock().unwrap() = name.to_owned();
    }

    pub fn claims(&self) -> Value {
        json!({
            "iss": self.published.at, "sub": "subject-1", "aud": CLIENT_ID,
            "exp": now() + 300, "iat": now(), "groups": ["ml", "all"],
            "email": "ann@example.com", "email_verified": true,
        })
    }

    /// The same with one claim changed, or without it when the value is null.
    pub fn claims_with(&self, claim: &str, value: Value) -> Value {
        let mut claims = self.claims();
        claims[claim] = value;
        let fields = claims.as_object_mut().unwrap();
        fields.retain(|_, value| !value.is_null());
        claims
    }

    pub fn token(&self, signing: Signing, claims: &Value) -> String {
        self.token_with(signing, &json!({}), claims)
    }

    /// A token whose header says more, or something else.
    pub fn token_with(&self, signing: Signing, header: &Value, claims: &Value) -> String {
        let (algorithm, kid) = match signing {
            Signing::P256 => ("ES256", "p256"),
            Signing::Edwards => ("EdDSA", "edwards"),
        };
        let mut whole = json!({"alg": algorithm, "kid": kid, "typ": "JWT"});
        for (name, value) in header.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let text = format!(
            "{}.{}",
            encoded(whole.to_string()),
            encoded(claims.to_string())
        );
        let signature = match signing {
            Signing::P256 => {
                let signed = self.p256.sign(&SystemRandom::new(), text.as_bytes());
                encoded(signed.unwrap())
            }
            Signing::Edwards => encoded(self.edwards.sign(text.as_bytes())),
        };
        format!("{text}.{signature}")
    }

    pub fn token_with_shared_secret(&self, claims: &Value) -> String {
        let header = json!({"alg": "HS256", "kid": "p256", "typ": "JWT"});
        let text = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.p256.public_key().as_ref());
        format!("{text}.{}", encoded(hmac::sign(&key, text.as_bytes())))
    }
}

async fn discovery(State(published): State<Arc<Published>>) -> Json<Value> {
    published.asked.fetch_add(1, Ordering::Relaxed);
    let at = &published.at;
    Json(json!({
        "issuer": *published.name.lock().unwrap(), "jwks_uri": format!("{at}/keys"),
        "device_authorization_endpoint": format!("{at}/device"),
        "token_endpoint": format!("{at}/token"),
    }))
}

async fn keys(State(published): State<Arc<Published>>) -> Json<Value> {
    Json(published.keys.clone())
}
