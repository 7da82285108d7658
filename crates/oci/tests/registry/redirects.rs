//! Where a registry may lead, counted where it should not.

use dayfly_oci::registry::{RegistryError, RegistryReach};

use crate::server::{Content, Puller, Server, redirect};

/// A registry whose layer is at another address.
async fn leading(to: impl Fn(&str) -> String + Send + Sync + 'static) -> (Server, Content) {
    let content = Content::new();
    let own = content.clone();
    let server = Server::start(move |seen| match seen.path == own.layer_path() {
        true => redirect(&to(&seen.path)),
        false => own.answer(seen),
    });
    (server.await, content)
}

#[tokio::test]
async fn a_layer_is_got_from_where_the_operator_allowed() {
    let honest = Content::new();
    let elsewhere = Server::start(move |seen| honest.answer(seen)).await;
    let port = elsewhere.port;
    let (server, content) = leading(move |path| format!("https://localhost:{port}{path}")).await;
    let puller = Puller::of(&server).allow("localhost", port);
    assert_eq!(puller.fetch(&content).await.unwrap(), content.layer);
    assert_eq!(elsewhere.paths(), [content.layer_path()]);
}

#[tokio::test]
async fn no_redirect_leads_inside() {
    let sink = Server::sink().await;
    let port = sink.port;
    for host in [
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
        format!("127.0.0.1:{port}"),
        format!("127.1:{port}"),
        format!("0x7f000001:{port}"),
        format!("0.0.0.0:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        "169.254.169.254".to_owned(),
        "[fd00:ec2::254]".to_owned(),
        "10.0.0.1".to_owned(),
    ] {
        let to = format!("https://{host}/latest/meta-data");
        let (server, content) = leading(move |_| to.clone()).await;
        let error = Puller::of(&server).fetch_refused(&content).await;
        let is_refused = matches!(error, RegistryError::RefusedAddress { .. });
        assert!(is_refused, "{host}: {error:?}");
        assert_eq!(server.seen().len(), 1, "{host}");
    }
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn another_port_of_an_allowed_host_is_inside() {
    let sink = Server::sink().await;
    let port = sink.port;
    let (server, content) = leading(move |path| format!("https://localhost:{port}{path}")).await;
    let error = Puller::of(&server).fetch_refused(&content).await;
    assert!(matches!(error, RegistryError::RefusedAddress { .. }));
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn no_redirect_leads_out_of_tls() {
    let sink = Server::sink().await;
    for host in [
        format!("localhost:{}", sink.port),
        "169.254.169.254".to_owned(),
    ] {
        let to = format!("http://{host}/");
        let (server, content) = leading(move |_| to.clone()).await;
        let puller = Puller::of(&server).allow("localhost", sink.port);
        let error = puller.fetch_refused(&content).await;
        assert!(
            matches!(error, RegistryError::NotPrivate { .. }),
            "{error:?}"
        );
    }
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn addresses_that_cannot_be_used_are_refused() {
    let sink = Server::sink().await;
    let with_user = format!("https://user:word@localhost:{}/", sink.port);
    let long = format!("https://localhost:{}/{}", sink.port, "a".repeat(9000));
    for to in [
        with_user,
        long,
        "ftp://localhost/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let (server, content) = leading(move |_| to.clone()).await;
        let puller = Puller::of(&server).allow("localhost", sink.port);
        let error = puller.fetch_refused(&content).await;
        assert!(matches!(error, RegistryError::Redirect { .. }), "{error:?}");
    }
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let server = Server::start(|seen| redirect(&seen.path)).await;
    let error = Puller::of(&server).refused().await;
    assert!(matches!(error, RegistryError::TooManyRedirects { .. }));
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn who_names_an_image_inside_does_not_reach_it() {
    let sink = Server::sink().await;
    let mut puller = Puller::of(&sink);
    puller.access.reach = RegistryReach::default();
    let error = puller.refused().await;
    let RegistryError::RefusedAddress { host, address } = error else {
        panic!("{error:?}");
    };
    assert_eq!(host, format!("localhost:{}", sink.port));
    assert!(address.is_loopback());
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn plain_http_needs_a_word_of_the_operator_and_a_loopback_address() {
    let content = Content::new();
    let own = content.clone();
    let server = Server::start_plain(move |seen| own.answer(seen)).await;
    let mut puller = Puller::of(&server);
    puller.access.plain_loopback = true;
    assert_eq!(puller.find().await.unwrap().manifest, content.manifest);
    assert_eq!(puller.fetch(&content).await.unwrap(), content.layer);
    let before = server.connections();
    puller.access.reach = RegistryReach::default();
    let error = puller.refused().await;
    assert!(matches!(error, RegistryError::RefusedAddress { .. }));
    assert_eq!(server.connections(), before);
}
