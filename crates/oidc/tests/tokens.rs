//! Tokens of a provider on this host: which are taken, and which are not.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use dayfly_oidc::{Issuer, Provider, ProviderSettings, TokenRefusal};
use dayfly_testkit::issuer::{CLIENT_ID, Signing, TestIssuer, now};
use serde_json::{Value, json};

fn provider(issuer: &TestIssuer) -> Provider {
    let settings = ProviderSettings {
        issuer: Issuer::parse(issuer.name()).unwrap(),
        client_id: CLIENT_ID.to_owned(),
        authority: None,
    };
    Provider::new(settings).unwrap()
}

#[tokio::test]
async fn a_token_of_the_provider_says_who_somebody_is() {
    let issuer = TestIssuer::start().await;
    let provider = provider(&issuer);
    for signing in [Signing::P256, Signing::Edwards] {
        let claims = issuer.claims();
        let person = provider.verify(&issuer.token(signing, &claims)).await;
        let person = person.unwrap();
        assert_eq!(person.subject, "subject-1");
        assert_eq!(person.name(), "ann@example.com");
        assert!(person.has("groups", "ml") && person.has("sub", "subject-1"));
        assert!(person.has("email", "ann@example.com"));
        assert!(!person.has("groups", "other") && !person.has("absent", "ml"));
    }
    assert_eq!(issuer.asked(), 1, "its keys are remembered");
    let endpoints = provider.endpoints().await.unwrap();
    assert!(endpoints.device_authorization.is_some() && endpoints.token.is_some());
}

#[tokio::test]
async fn an_address_that_nobody_checked_is_nobodys() {
    let issuer = TestIssuer::start().await;
    let provider = provider(&issuer);
    for unchecked in [json!(false), json!("true"), Value::Null] {
        let claims = issuer.claims_with("email_verified", unchecked);
        let token = issuer.token(Signing::P256, &claims);
        let person = provider.verify(&token).await.unwrap();
        assert!(!person.has("email", "ann@example.com"));
        assert_eq!(person.name(), "subject-1", "nor is it what they are called");
    }
    let claims = issuer.claims_with("email_verified", json!(false));
    let mut claims = claims;
    claims["email"] = json!(["ann@example.com"]);
    let token = issuer.token(Signing::P256, &claims);
    let person = provider.verify(&token).await.unwrap();
    assert!(!person.has("email", "ann@example.com"));
}

#[tokio::test]
async fn a_name_is_one_line() {
    let issuer = TestIssuer::start().await;
    let name = format!("ann\n\u{1b}[31m{}", "x".repeat(200));
    let mut claims = issuer.claims_with("email", Value::Null);
    claims["preferred_username"] = json!(name);
    let token = issuer.token(Signing::P256, &claims);
    let person = provider(&issuer).verify(&token).await.unwrap();
    let name = person.name();
    assert!(
        !name.contains(char::is_control) && name.chars().count() == 128,
        "{name}"
    );
}

/// Somebody who sends a key that nobody knows, and hangs up.
#[tokio::test]
async fn a_question_to_the_provider_is_remembered_also_by_those_who_left() {
    let issuer = TestIssuer::start().await;
    let provider = provider(&issuer);
    let nameless = json!({"kid": "nobody"});
    let token = issuer.token_with(Signing::P256, &nameless, &issuer.claims());
    for _ in 0..20 {
        let asked = provider.verify(&token);
        let _ = tokio::time::timeout(std::time::Duration::ZERO, asked).await;
    }
    let refused = provider.verify(&token).await.unwrap_err();
    assert!(matches!(refused, TokenRefusal::UnknownKey), "{refused}");
    assert_eq!(issuer.asked(), 1);
}

/// Each with everything else right.
#[tokio::test]
async fn what_a_token_says_must_be_right() {
    let issuer = TestIssuer::start().await;
    let provider = provider(&issuer);
    let cases = [
        ("aud", json!("somebody-else"), "somebody else"),
        ("aud", json!([]), "somebody else"),
        ("aud", json!([CLIENT_ID, "another"]), "somebody else"),
        ("aud", Value::Null, "lacks"),
        ("azp", json!("another"), "somebody else"),
        ("typ", json!("Bearer"), "lacks"),
        ("iss", json!("https://id.example"), "another issuer"),
        (
            "iss",
            json!(format!("{}/", issuer.name())),
            "another issuer",
        ),
        ("iss", json!([issuer.name()]), "lacks"),
        ("iss", Value::Null, "lacks"),
        ("sub", Value::Null, "lacks"),
        ("sub", json!(""), "lacks"),
        ("exp", json!(now() - 61), "expired"),
        ("exp", json!("tomorrow"), "lacks"),
        ("exp", Value::Null, "lacks"),
        ("nbf", json!(now() + 120), "not valid yet"),
        ("nbf", json!("tomorrow"), "lacks"),
        ("iat", json!(now() + 120), "not valid yet"),
        ("iat", Value::Null, "lacks"),
    ];
    for (claim, value, why) in cases {
        let claims = issuer.claims_with(claim, value.clone());
        let refused = provider.verify(&issuer.token(Signing::P256, &claims)).await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(why), "{claim} {value}: {text}");
    }
    let taken = issuer.claims_with("aud", json!([CLIENT_ID]));
    provider
        .verify(&issuer.token(Signing::P256, &taken))
        .await
        .unwrap();
    let mut taken = issuer.claims_with("azp", json!(CLIENT_ID));
    taken["typ"] = json!("ID");
    provider
        .verify(&issuer.token(Signing::P256, &taken))
        .await
        .unwrap();
}

#[tokio::test]
async fn only_the_providers_own_signature_counts() {
    let issuer = TestIssuer::start().await;
    let provider = provider(&issuer);
    let claims = issuer.claims();
    let good = issuer.token(Signing::P256, &claims);
    provider.verify(&good).await.unwrap();

    let refused = async |token: &str| provider.verify(token).await.unwrap_err();
    // Another one's key under the provider's name for its own.
    let stranger = TestIssuer::start().await;
    let forged = stranger.token(Signing::P256, &claims);
    assert!(matches!(refused(&forged).await, TokenRefusal::Signature));
    let nameless = issuer.token_with(Signing::P256, &json!({"kid": "nobody"}), &claims);
    assert!(matches!(refused(&nameless).await, TokenRefusal::UnknownKey));
    // A key of one kind for a signature of another.
    let crossed = issuer.token_with(Signing::P256, &json!({"kid": "edwards"}), &claims);
    assert!(matches!(refused(&crossed).await, TokenRefusal::UnknownKey));
    for algorithm in ["none", "None", "HS256", "HS512", "ES256K", "RS1"] {
        let unsigned = issuer.token_with(Signing::P256, &json!({"alg": algorithm}), &claims);
        let why = refused(&unsigned).await;
        let is_refused = matches!(why, TokenRefusal::Algorithm | TokenRefusal::NoToken);
        assert!(is_refused, "{algorithm}: {why}");
    }
    // The public key as a shared secret.
    let shared = issuer.token_with_shared_secret(&claims);
    assert!(matches!(refused(&shared).await, TokenRefusal::Algorithm));
    for header in [
        json!({"typ": "at+jwt"}),
        json!({"crit": ["exp"]}),
        json!({"zip": "DEF"}),
        json!({"enc": "A128GCM"}),
    ] {
        let token = issuer.token_with(Signing::P256, &header, &claims);
        assert!(
            matches!(refused(&token).await, TokenRefusal::NoToken),
            "{header}"
        );
    }
}

#[tokio::test]
async fn a_changed_or_broken_token_is_refused() {
    let issuer = TestIssuer::start().await;
    let provider = provider(&issuer);
    let good = issuer.token(Signing::P256, &issuer.claims());
    let parts: Vec<&str> = good.split('.').collect();
    let other = issuer.claims_with("sub", json!("subject-2"));
    let other = issuer.token(Signing::P256, &other);
    let other: Vec<&str> = other.split('.').collect();
    for broken in [
        format!("{}.{}.{}", parts[0], other[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}."),
        format!("{good}A"),
        format!("{}.{}.{}", parts[0], parts[1], &parts[2][1..]),
        String::new(),
        "...".to_owned(),
        "x".repeat(16 << 10),
        "x".repeat((16 << 10) + 1),
    ] {
        let refused = provider.verify(&broken).await;
        assert!(refused.is_err(), "{broken}");
    }
    provider.verify(&good).await.unwrap();
}

#[tokio::test]
async fn a_provider_that_is_gone_or_another_is_said() {
    let issuer = TestIssuer::start().await;
    let token = issuer.token(Signing::P256, &issuer.claims());
    issuer.calls_itself("https://id.example");
    let provider = provider(&issuer);
    let why = provider.verify(&token).await.unwrap_err();
    assert!(matches!(why, TokenRefusal::Provider(_)));
    let why = provider.verify(&token).await.unwrap_err();
    let TokenRefusal::Provider(why) = why else {
        panic!("{why}");
    };
    assert!(why.to_string().contains("a moment ago"), "{why}");
    assert_eq!(issuer.asked(), 1, "it is not asked without end");
}
