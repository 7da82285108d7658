//! Who gets to see a password, and who a token.

use dayfly_oci::registry::RegistryError;

use crate::server::{Content, PASSWORD, Puller, Server, challenge, redirect, status};

/// `puller:a password`
const BASIC: &str = "Basic cHVsbGVyOmEgcGFzc3dvcmQ=";

/// Gives a token to whoever has the password.
async fn token_server() -> Server {
    Server::start(|seen| match seen.header("authorization") {
        Some(BASIC) => axum::response::IntoResponse::into_response(r#"{"token":"good"}"#),
        _ => status(401),
    })
    .await
}

/// A registry that wants a token of this place.
async fn registry_with(realm: String, layer_at: Option<u16>) -> (Server, Content) {
    let content = Content::new();
    let own = content.clone();
    let server = Server::start(move |seen| match (seen.header("authorization"), layer_at) {
        (Some("Bearer good"), Some(port)) if seen.path == own.layer_path() => {
            redirect(&format!("https://localhost:{port}{}", seen.path))
        }
        (Some("Bearer good"), _) => own.answer(seen),
        _ => challenge(&format!(
            r#"Bearer realm="{realm}",service="a service",scope="repository:other:push""#
        )),
    });
    (server.await, content)
}

#[tokio::test]
async fn the_password_goes_to_the_realm_and_the_token_to_the_registry_alone() {
    assert_eq!(PASSWORD, "a password");
    let tokens = token_server().await;
    let honest = Content::new();
    let elsewhere = Server::start(move |seen| honest.answer(seen)).await;
    let realm = format!("https://localhost:{}/token?kind=a", tokens.port);
    let (registry, content) = registry_with(realm, Some(elsewhere.port)).await;
    let puller = Puller::of(&registry).with_password();
    let puller = puller
        .allow("localhost", tokens.port)
        .allow("localhost", elsewhere.port);
    let source = puller.source();
    let image = source.find().await.unwrap();
    assert_eq!(image.manifest, content.manifest);
    source
        .fetch(&image.layers[0], &puller.file(), &|_| ())
        .await
        .unwrap();
    let asked = tokens.seen();
    assert_eq!(asked.len(), 1, "the token is used again");
    assert_eq!(asked[0].header("authorization"), Some(BASIC));
    // Not what the challenge would have had.
    let query = "kind=a&service=a+service&scope=repository%3Ateam%2Fapp%3Apull";
    assert_eq!(asked[0].query, query);
    assert!(
        registry
            .seen()
            .iter()
            .all(|one| one.header("authorization") != Some(BASIC))
    );
    assert_eq!(elsewhere.seen().len(), 1);
    assert_eq!(elsewhere.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_realm_leads_neither_inside_nor_out_of_tls() {
    let sink = Server::sink().await;
    let port = sink.port;
    for (realm, is_private) in [
        (format!("https://localhost:{port}/token"), true),
        (format!("https://127.0.0.1:{port}/token"), true),
        ("https://169.254.169.254/token".to_owned(), true),
        (format!("http://localhost:{port}/token"), false),
        ("http://registry.example/token".to_owned(), false),
    ] {
        let (registry, _) = registry_with(realm.clone(), None).await;
        let error = Puller::of(&registry).with_password().refused().await;
        let is_fitting = match is_private {
            true => matches!(error, RegistryError::RefusedAddress { .. }),
            false => matches!(error, RegistryError::NotPrivate { .. }),
        };
        assert!(is_fitting, "{realm}: {error:?}");
        assert!(
            registry
                .seen()
                .iter()
                .all(|one| one.header("authorization").is_none())
        );
    }
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn a_realm_cannot_pass_the_password_on() {
    let sink = Server::sink().await;
    let port = sink.port;
    let realm = Server::start(move |_| redirect(&format!("https://localhost:{port}/"))).await;
    let (registry, _) = registry_with(format!("https://localhost:{}/", realm.port), None).await;
    let puller = Puller::of(&registry).with_password();
    let puller = puller
        .allow("localhost", realm.port)
        .allow("localhost", port);
    let error = puller.refused().await;
    assert!(matches!(error, RegistryError::Token { .. }), "{error:?}");
    assert_eq!(realm.seen().len(), 1);
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn whoever_a_registry_leads_to_may_not_ask_for_the_password() {
    let asking = Server::start(|_| challenge("Basic realm=a")).await;
    let port = asking.port;
    let registry = Server::start(move |_| redirect(&format!("https://localhost:{port}/"))).await;
    let puller = Puller::of(&registry)
        .with_password()
        .allow("localhost", port);
    let error = puller.refused().await;
    assert!(matches!(error, RegistryError::Denied { .. }), "{error:?}");
    assert_eq!(asking.seen().len(), 1);
    assert_eq!(asking.seen()[0].header("authorization"), None);
}

/// A registry that wants the password itself.
fn with_basic(content: Content) -> impl Fn(&crate::server::Seen) -> axum::response::Response {
    move |seen| match seen.header("authorization") {
        Some(BASIC) => content.answer(seen),
        _ => challenge("Basic realm=\"a registry\""),
    }
}

#[tokio::test]
async fn the_password_is_sent_over_tls_only() {
    let private = Server::start(with_basic(Content::new())).await;
    assert!(Puller::of(&private).with_password().find().await.is_ok());
    let first = &private.seen()[0];
    assert_eq!(first.header("authorization"), None, "before anybody asked");
    let plain = Server::start_plain(with_basic(Content::new())).await;
    let mut puller = Puller::of(&plain).with_password();
    puller.access.plain_loopback = true;
    let error = puller.refused().await;
    assert!(matches!(error, RegistryError::CredentialsInPlain { .. }));
    assert_eq!(plain.seen().len(), 1);
    assert_eq!(plain.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_refusal_says_whether_there_was_a_password() {
    let server = Server::start(|_| challenge("Basic realm=a")).await;
    let error = Puller::of(&server).refused().await;
    assert!(matches!(error, RegistryError::NeedsCredentials { .. }));
    let error = Puller::of(&server).with_password().refused().await;
    assert!(matches!(error, RegistryError::Denied { .. }));
    let server = Server::start(|_| challenge("Bearer realm=\"a\", Basic realm=\"b\"")).await;
    let error = Puller::of(&server).with_password().refused().await;
    assert!(matches!(error, RegistryError::Challenge { .. }));
    let shown = format!("{:?}", Puller::of(&server).with_password().access);
    assert!(!shown.contains(PASSWORD) && !shown.contains("puller"));
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    for body in [
        "{}",
        "no",
        r#"{"token":""}"#,
        r#"{"token":"a\r\nb"}"#,
        r#"{"token":1}"#,
    ] {
        let tokens = Server::start(move |_| axum::response::IntoResponse::into_response(body));
        let tokens = tokens.await;
        let realm = format!("https://localhost:{}/", tokens.port);
        let (registry, _) = registry_with(realm, None).await;
        let error = Puller::of(&registry)
            .allow("localhost", tokens.port)
            .refused()
            .await;
        assert!(
            matches!(error, RegistryError::Token { .. }),
            "{body}: {error:?}"
        );
    }
}
