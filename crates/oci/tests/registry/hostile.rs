//! Registries that give something else than they were asked for, or break.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use dayfly_oci::Digest;
use dayfly_oci::blob::FetchBlobError;
use dayfly_oci::document::InvalidDocument;
use dayfly_oci::registry::RegistryError;
use dayfly_oci::source::FindImageError;
use futures::stream;

use crate::server::{Content, Puller, Seen, Server, status};

/// A registry that is honest but for its layer.
async fn with_layer(
    answer: impl Fn(&Content, &Seen) -> Response + Send + Sync + 'static,
) -> (Server, Content) {
    let content = Content::new();
    let own = content.clone();
    let server = Server::start(move |seen| match seen.path == own.layer_path() {
        true => answer(&own, seen),
        false => own.answer(seen),
    });
    (server.await, content)
}

/// A registry that is honest but for its manifest.
async fn with_manifest(
    answer: impl Fn(&Content, Response) -> Response + Send + Sync + 'static,
) -> Server {
    let content = Content::new();
    Server::start(move |seen| match seen.path.contains("/manifests/") {
        true => answer(&content, content.answer(seen)),
        false => content.answer(seen),
    })
    .await
}

fn pieces(parts: Vec<Result<Bytes, std::io::Error>>) -> Body {
    Body::from_stream(stream::iter(parts))
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn an_honest_registry_gives_an_image_by_tag_and_by_digest() {
    let content = Content::new();
    let own = content.clone();
    let server = Server::start(move |seen| own.answer(seen)).await;
    let by_digest = format!("@{}", content.manifest);
    for version in [":v1", ":many", &by_digest, &format!(":v1{by_digest}")] {
        let puller = Puller::of(&server).named(version);
        let image = is_send(puller.find()).await.unwrap();
        assert_eq!(image.manifest, content.manifest, "{version}");
        assert_eq!(image.config.command, ["/bin/app"]);
        assert_eq!(image.layers[0].digest, Digest::of(&content.layer));
    }
    let told = AtomicUsize::new(0);
    let progress = |_| {
        told.fetch_add(1, Ordering::Relaxed);
    };
    let puller = Puller::of(&server);
    let (source, into) = (puller.source(), puller.file());
    let layer = source.find().await.unwrap().layers.remove(0);
    is_send(source.fetch(&layer, &into, &progress))
        .await
        .unwrap();
    assert_eq!(std::fs::read(&into).unwrap(), content.layer);
    assert!(told.load(Ordering::Relaxed) > 0);
    let error = Puller::of(&server).named(":none").refused().await;
    assert!(matches!(error, RegistryError::NotFound { .. }));
}

#[tokio::test]
async fn nobody_is_believed_without_a_certificate() {
    let server = Server::sink().await;
    let mut puller = Puller::of(&server);
    puller.access.authority = None;
    let error = puller.refused().await;
    assert!(
        matches!(error, RegistryError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_manifest_with_another_digest_is_refused() {
    let server = with_manifest(|_, mut response| {
        let wrong = Digest::of(b"wrong").to_string().parse().unwrap();
        response
            .headers_mut()
            .insert("docker-content-digest", wrong);
        response
    });
    let error = Puller::of(&server.await).refused().await;
    assert!(
        matches!(error, RegistryError::OtherName { .. }),
        "{error:?}"
    );
    let right = Content::new().manifest.to_string();
    let server = with_manifest(move |_, mut response| {
        let right = right.parse().unwrap();
        response
            .headers_mut()
            .insert("docker-content-digest", right);
        response
    });
    assert!(Puller::of(&server.await).find().await.is_ok());
    let content = Content::new();
    let server = Server::start(move |seen| {
        let mut seen = seen.clone();
        seen.path = seen.path.replace("manifests/sha256:", "manifests/v1#");
        let path = seen.path.split('#').next().unwrap().to_owned();
        content.answer(&Seen { path, ..seen })
    });
    let server = server.await;
    let wanted = Digest::of(b"another");
    let error = Puller::of(&server)
        .named(&format!("@{wanted}"))
        .refused()
        .await;
    assert!(
        matches!(error, RegistryError::OtherContent { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_endless_manifest_ends() {
    let server = with_manifest(|_, mut response| {
        let piece = Bytes::from(vec![b' '; 64 << 10]);
        let endless = stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
        *response.body_mut() = Body::from_stream(endless);
        response.headers_mut().remove("content-length");
        response
    });
    let server = server.await;
    let error = Puller::of(&server).refused().await;
    assert!(matches!(error, RegistryError::TooLong { .. }), "{error:?}");
    assert_eq!(server.seen().len(), 1, "it is not tried again");
}

#[tokio::test]
async fn a_manifest_of_another_kind_is_refused() {
    let server = with_manifest(|_, mut response| {
        let page = "text/html".parse().unwrap();
        response.headers_mut().insert("content-type", page);
        response
    });
    let error = Puller::of(&server.await).find().await.unwrap_err();
    let is_other = |error: &_| matches!(error, InvalidDocument::OtherKind { .. });
    assert!(matches!(error, FindImageError::Document(error) if is_other(&error)));
}

#[tokio::test]
async fn a_layer_with_other_bytes_is_not_kept() {
    let (server, content) = with_layer(|content, _| {
        let mut wrong = content.layer.clone();
        wrong[7] ^= 1;
        wrong.into_response()
    })
    .await;
    let error = Puller::of(&server).fetch(&content).await.unwrap_err();
    assert!(
        matches!(error, FetchBlobError::OtherContent { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_layer_of_another_length_is_refused() {
    let short = |content: &Content| content.layer[..1000].to_vec();
    let long = |content: &Content| [content.layer.as_slice(), b"x"].concat();
    for make in [short as fn(&Content) -> Vec<u8>, long] {
        for is_announced in [true, false] {
            let (server, content) = with_layer(move |content, _| match is_announced {
                true => make(content).into_response(),
                false => pieces(vec![Ok(make(content).into())]).into_response(),
            })
            .await;
            let error = Puller::of(&server).fetch_refused(&content).await;
            assert!(
                matches!(error, RegistryError::OtherSize { .. }),
                "{error:?}"
            );
            assert_eq!(server.seen().len(), 1);
        }
    }
}

/// Breaks the first connection in the middle, and then answers as told.
async fn breaking(
    then: impl Fn(&Content, usize) -> Response + Send + Sync + 'static,
) -> (Server, Content) {
    with_layer(move |content, seen| match seen.header("range") {
        None => {
            let half = Bytes::copy_from_slice(&content.layer[..content.layer.len() / 2]);
            let broken = std::io::Error::other("broken");
            let length = content.layer.len().to_string();
            let body = pieces(vec![Ok(half), Err(broken)]);
            ([("content-length", length)], body).into_response()
        }
        Some(range) => {
            let from = range.strip_prefix("bytes=").unwrap();
            then(content, from.strip_suffix('-').unwrap().parse().unwrap())
        }
    })
    .await
}

fn part(content: &Content, from: usize, told: &str) -> Response {
    let body = content.layer[from..].to_vec();
    let response = Response::builder()
        .status(206)
        .header("content-range", told);
    response.body(Body::from(body)).unwrap()
}

#[tokio::test]
async fn a_broken_connection_is_taken_up_where_it_broke() {
    let (server, content) = breaking(|content, from| {
        assert!(from > 0);
        let length = content.layer.len();
        part(
            content,
            from,
            &format!("bytes {from}-{}/{length}", length - 1),
        )
    })
    .await;
    assert_eq!(
        Puller::of(&server).fetch(&content).await.unwrap(),
        content.layer
    );
    assert_eq!(server.seen().len(), 2);
    // One that begins again is read past what is here.
    let (server, content) = breaking(|content, _| content.layer.clone().into_response()).await;
    assert_eq!(
        Puller::of(&server).fetch(&content).await.unwrap(),
        content.layer
    );
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn another_part_than_the_one_asked_for_is_refused() {
    let (server, content) = breaking(|content, from| {
        let length = content.layer.len();
        part(
            content,
            from,
            &format!("bytes {}-{}/{length}", from + 1, length - 1),
        )
    })
    .await;
    let error = Puller::of(&server).fetch_refused(&content).await;
    assert!(
        matches!(error, RegistryError::OtherPart { .. }),
        "{error:?}"
    );
    let (server, content) = with_layer(|content, _| part(content, 0, "bytes 0-1/2")).await;
    let error = Puller::of(&server).fetch_refused(&content).await;
    assert!(
        matches!(error, RegistryError::OtherPart { .. }),
        "{error:?}"
    );
}

fn busy(code: u16) -> Response {
    let mut response = status(code);
    response
        .headers_mut()
        .insert("retry-after", "0".parse().unwrap());
    response
}

#[tokio::test]
async fn a_busy_registry_is_asked_again_and_not_forever() {
    for code in [429, 503] {
        let content = Content::new();
        let count = AtomicUsize::new(0);
        let own = content.clone();
        let server = Server::start(move |seen| match count.fetch_add(1, Ordering::SeqCst) {
            0..3 => busy(code),
            _ => own.answer(seen),
        });
        let image = Puller::of(&server.await).find().await.unwrap();
        assert_eq!(image.manifest, content.manifest);
        let server = Server::start(move |_| busy(code)).await;
        let error = Puller::of(&server).refused().await;
        assert!(matches!(error, RegistryError::Status { status, .. } if status == code));
        assert_eq!(server.seen().len(), 4);
    }
    let server = Server::start(|_| busy(400)).await;
    let error = Puller::of(&server).refused().await;
    assert!(matches!(error, RegistryError::Status { status: 400, .. }));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_file_that_is_there_is_left_alone() {
    let (server, content) = with_layer(|content, _| content.layer.clone().into_response()).await;
    let puller = Puller::of(&server);
    let source = puller.source();
    let layer = source.find().await.unwrap().layers.remove(0);
    std::fs::write(puller.file(), "mine").unwrap();
    let error = source
        .fetch(&layer, &puller.file(), &|_| ())
        .await
        .unwrap_err();
    assert!(matches!(error, FetchBlobError::Create { .. }), "{error:?}");
    assert_eq!(std::fs::read(puller.file()).unwrap(), b"mine");
    assert_eq!(content.layer.len() as u64, layer.size);
}
