//! The client against a server that plays a script of raw answers, one for each request.

#[cfg(test)]
mod files;
#[cfg(test)]
mod network;
#[cfg(test)]
mod script;
#[cfg(test)]
mod state;
#[cfg(test)]
mod tls;

use std::io;
use std::time::Duration;

use dayfly_client::api::{Command, CreateSandbox, ExecRequest};
use dayfly_client::{
    ApiKey, Client, ClientConfig, ClientError, CommandEvent, FileBody, StreamLoss, WaitReason,
};
use dayfly_types::ErrorCode;
use script::{Answer, Script, client};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

const ID: &str = "sb-local-1";
const SANDBOX: &str = r#"{"id":"sb-local-1","template":"base","status":"running","cpu":1,
    "memory_mb":256,"created_at":"2026-01-01T00:00:00Z","metadata":{},"persistent":false,
    "ttl_seconds":3600,"expires_at":null,"boot_mode":"restore","boot_ms":5,
    "isolation":"emulated","a_field_of_later":1}"#;

fn exec_request() -> ExecRequest {
    ExecRequest::new(Command::Argv(vec!["true".to_owned()]))
}

#[tokio::test]
async fn reads_and_deletes_are_repeated_when_the_connection_is_lost() {
    let script = Script::play([
        Answer::Drop,
        Answer::json(200, r#"{"items":[]}"#),
        Answer::Drop,
        Answer::json(204, ""),
    ])
    .await;
    assert!(client(&script).list_sandboxes().await.unwrap().is_empty());
    client(&script).delete_sandbox(ID).await.unwrap();
    assert_eq!(script.requests().len(), 4);
    assert!(
        script.requests()[0]
            .head
            .contains("authorization: Bearer df_key")
    );
}

#[tokio::test]
async fn a_command_is_never_sent_twice() {
    let script = Script::play([Answer::Drop, Answer::Drop]).await;
    let error = client(&script)
        .exec_stream(ID, &exec_request())
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error:?}");
    let error = client(&script).exec(ID, &exec_request()).await.unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error:?}");
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test]
async fn a_lost_create_is_repeated_with_its_key_and_a_refused_one_with_a_new_one() {
    let refusal = r#"{"error":"baking","code":"template_baking","request_id":"r","percent":30}"#;
    let script = Script::play([
        Answer::Drop,
        Answer::json(503, refusal),
        Answer::json(201, SANDBOX),
    ])
    .await;
    let mut heard = Vec::new();
    let request = CreateSandbox::default();
    let sandbox = client(&script)
        .create_when_ready(&request, |news| heard.push(news.clone()))
        .await
        .unwrap();
    assert_eq!(sandbox.id, ID);
    assert_eq!(heard.len(), 1);
    assert_eq!(
        (heard[0].reason, heard[0].percent),
        (WaitReason::TemplateBaking, Some(30))
    );
    let keys: Vec<String> = script
        .requests()
        .iter()
        .map(|request| request.header("idempotency-key"))
        .collect();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2]);
}

#[tokio::test]
async fn a_stop_while_waiting_creates_nothing_more() {
    let refusal = r#"{"error":"full","code":"no_capacity","request_id":"r"}"#;
    let script = Script::play([Answer::json(503, refusal)]).await;
    let request = CreateSandbox::default();
    let stopped = client(&script)
        .create_when_ready_unless(&request, async {}, |_| {})
        .await
        .unwrap();
    assert!(stopped.is_none());
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test]
async fn one_connection_serves_create_exec_and_delete() {
    let events = "event: stdout\ndata: {\"chunk\":\"hi\"}\n\n\
                  event: exit\ndata: {\"exit_code\":0,\"reason\":\"exited\",\"duration_ms\":1}\n\n";
    let script = Script::play([
        Answer::json(201, SANDBOX),
        Answer::stream(events),
        Answer::json(204, ""),
    ])
    .await;
    let client = client(&script);
    client
        .create_sandbox(&CreateSandbox::default())
        .await
        .unwrap();
    let mut stream = client.exec_stream(ID, &exec_request()).await.unwrap();
    assert_eq!(
        stream.next().await.unwrap(),
        Some(CommandEvent::Stdout("hi".to_owned()))
    );
    assert!(matches!(
        stream.next().await.unwrap(),
        Some(CommandEvent::Exit(_))
    ));
    assert_eq!(stream.next().await.unwrap(), None);
    client.delete_sandbox(ID).await.unwrap();
    let connections: Vec<usize> = script
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [0, 0, 0]);
}

#[tokio::test]
async fn a_stream_that_ends_or_breaks_without_an_exit_has_an_unknown_outcome() {
    let output = "event: stdout\ndata: {\"chunk\":\"hi\"}\n\n";
    let half = "event: exit\ndata: {\"exit_code\":0,\"reason\":\"exited\",\"duration_ms\":1}\n";
    for answer in [
        Answer::stream(output),
        Answer::stream(&format!("{output}{half}")),
        Answer::cut_stream(output),
    ] {
        let script = Script::play([answer]).await;
        let mut stream = client(&script)
            .exec_stream(ID, &exec_request())
            .await
            .unwrap();
        assert_eq!(
            stream.next().await.unwrap(),
            Some(CommandEvent::Stdout("hi".to_owned()))
        );
        let error = stream.next().await.unwrap_err();
        assert!(
            matches!(error, ClientError::OutcomeUnknown { .. }),
            "{error:?}"
        );
        assert_eq!(
            stream.next().await.unwrap(),
            None,
            "nothing follows an error"
        );
    }
}

#[tokio::test]
async fn a_time_limit_is_the_servers_error() {
    let late = "event: error\ndata: {\"error\":\"timeout\",\"code\":\"timeout\"}\n\n";
    let script = Script::play([Answer::stream(late)]).await;
    let mut stream = client(&script)
        .exec_stream(ID, &exec_request())
        .await
        .unwrap();
    assert_eq!(
        stream.next().await.unwrap_err().api_code(),
        Some(ErrorCode::Timeout)
    );
}

#[tokio::test]
async fn a_command_that_the_server_lost_has_an_unknown_outcome_and_a_reason() {
    let lost = "event: lost\ndata: {}\n\n\
                data: {\"error\":\"guest is gone\",\"code\":\"guest_unavailable\"}\nevent: error\n\n";
    let script = Script::play([Answer::stream(lost)]).await;
    let mut stream = client(&script)
        .exec_stream(ID, &exec_request())
        .await
        .unwrap();
    let error = stream.next().await.unwrap_err();
    let ClientError::OutcomeUnknown {
        source: StreamLoss::Told(told),
    } = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(told.message, "guest is gone");
}

#[tokio::test]
async fn a_refusal_keeps_everything_that_the_server_said() {
    let body = r#"{"error":"no such sandbox","code":"not_found","hint":"h","request_id":"r"}"#;
    let script = Script::play([Answer::json(404, body)]).await;
    let error = client(&script).get_sandbox(ID).await.unwrap_err();
    let ClientError::Api(api) = error else {
        panic!("{error:?}")
    };
    assert_eq!((api.status, api.code.as_str()), (404, "not_found"));
    assert_eq!(api.retry_after, Some(Duration::from_secs(3)));
    assert_eq!(
        (api.advice.hint.as_deref(), api.request_id.as_deref()),
        (Some("h"), Some("r"))
    );
}

#[tokio::test]
async fn the_key_does_not_follow_a_redirect() {
    let script = Script::play([Answer::json(307, "")]).await;
    let error = client(&script).me().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    assert_eq!(script.requests().len(), 1);
}

/// A server that says hello to nobody: what the key is in is never sent in the open.
#[tokio::test]
async fn an_https_address_is_spoken_to_in_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut first = [0; 6];
        stream.read_exact(&mut first).await.unwrap();
        first
    });
    let key = ApiKey::parse("df_key").ok();
    let client = Client::new(ClientConfig { url, key }).unwrap();
    let error = client.me().await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
    let [kind, major, .., message] = heard.await.unwrap();
    assert_eq!((kind, major, message), (22, 3, 1), "no client's hello");
}

#[tokio::test]
async fn an_answer_of_another_shape_is_a_protocol_error() {
    let script = Script::play([Answer::json(200, "[]")]).await;
    let error = client(&script).list_sandboxes().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn uploads_announce_their_length_and_paths_are_escaped() {
    let written = r#"{"path":"/a b","bytes":3}"#;
    let script = Script::play([Answer::json(200, written), Answer::json(200, written)]).await;
    let client = client(&script);
    let answer = client
        .write_file(ID, "/a b&c", FileBody::from_bytes("abc"))
        .await
        .unwrap();
    assert_eq!(answer.bytes, 3);
    let body = FileBody::from_reader(io::Cursor::new(b"abc"), Some(3));
    client.write_file(ID, "/a", body).await.unwrap();
    let requests = script.requests();
    assert!(
        requests[0]
            .head
            .starts_with("PUT /v1/sandboxes/sb-local-1/fs?path=%2Fa+b%26c ")
    );
    for request in requests {
        assert_eq!(request.header("content-length"), "3");
        assert_eq!(request.body, b"abc");
    }
}

#[tokio::test]
async fn a_source_that_fails_is_told_apart_from_a_connection_that_does() {
    let script = Script::play([Answer::Drop]).await;
    let source = tokio_util::io::StreamReader::new(futures::stream::iter([
        Ok(bytes::Bytes::from_static(b"a")),
        Err(io::Error::other("disk on fire")),
    ]));
    let body = FileBody::from_reader(source, None);
    let error = client(&script)
        .write_file(ID, "/a", body)
        .await
        .unwrap_err();
    let ClientError::Upload { source } = error else {
        panic!("{error:?}")
    };
    assert_eq!(source.to_string(), "disk on fire");
}

#[tokio::test]
async fn a_file_that_is_cut_off_is_an_error() {
    let script = Script::play([Answer::Raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_owned(),
    )])
    .await;
    let mut content = client(&script).read_file(ID, "/a").await.unwrap();
    assert_eq!(content.length(), Some(10));
    assert_eq!(content.next().await.unwrap().unwrap(), "abc");
    let error = content.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error:?}");
}
