//! The trace of a real create: from the span of whoever asked down to the guest.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, patient, setting_or_skip};
use dayfly_testkit::trace_receiver::{Span, TraceReceiver, attribute};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(60);
const TRACE: [u8; 16] = [0x0a; 16];
const CALLER: [u8; 8] = [0xb7; 8];

#[tokio::test]
async fn a_create_has_its_stages_under_the_callers_span() -> Result<()> {
    let setting = setting_or_skip!();
    let mut receiver = TraceReceiver::start(&[]).await?;
    let variable = |name: &str, value: &str| (name.to_owned(), PathBuf::from(value));
    let options = DaemonOptions {
        environment: vec![
            variable("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url()),
            variable("OTEL_SERVICE_NAME", "sandboxes"),
            variable("OTEL_EXPORTER_OTLP_HEADERS", "key=secret"),
        ],
        ..DaemonOptions::default()
    };
    let (daemon, _) = Daemon::ready(&setting, options).await?;
    let node = format!("/proc/{}/environ", daemon.role_pid("node")?);
    let node = String::from_utf8_lossy(&std::fs::read(node)?).into_owned();
    let is_hidden = node.contains("PATH=") && !node.contains("OTEL_");
    ensure!(is_hidden, "the node has what is for the collector");
    let parent = "00-0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a-b7b7b7b7b7b7b7b7-01";
    let response = create(&daemon, parent).await?;
    ensure!(response.starts_with("HTTP/1.1 201"), "{response}");
    let is_ours = |span: &Span| span.trace_id == TRACE && is_request(span);
    let mut spans = receiver.until(is_ours).await;
    // Other requests of this test have traces of their own.
    spans.retain(|span| span.trace_id == TRACE);
    let request = spans.iter().find(|span| is_request(span));
    let request = request.context("no span of the request")?;
    ensure!(request.parent_span_id == CALLER, "{request:?}");
    let server = ["POST /v1/sandboxes", "control.start", CALL, CALL];
    for stage in [
        "node.admit",
        "node.line",
        "node.engine",
        "node.restore",
        "guest.agent",
        "guest.identity",
        "guest.thaw",
    ] {
        let span = spans.iter().find(|span| span.name == stage);
        let span = span.with_context(|| format!("no {stage}: {spans:#?}"))?;
        let above = ancestors(&spans, span);
        ensure!(above == server, "{stage}: {above:?}");
    }
    for span in &spans {
        let began = span.start_time_unix_nano >= request.start_time_unix_nano;
        let ended = span.end_time_unix_nano <= request.end_time_unix_nano;
        ensure!(began && ended, "{span:?} lies outside of {request:?}");
    }
    daemon.finish().await
}

const CALL: &str = "node.ensure_sandbox";

fn is_request(span: &Span) -> bool {
    attribute(span, "http.route").is_some()
}

/// Names of the spans above this one, the uppermost first.
fn ancestors(spans: &[Span], span: &Span) -> Vec<String> {
    let by_id: HashMap<_, _> = spans.iter().map(|span| (&span.span_id, span)).collect();
    let mut names = Vec::new();
    let mut above = by_id.get(&span.parent_span_id);
    while let Some(span) = above {
        names.insert(0, span.name.clone());
        above = by_id.get(&span.parent_span_id);
    }
    names
}

/// Asks as a caller with a trace of its own does.
async fn create(daemon: &Daemon, parent: &str) -> Result<String> {
    let body = r#"{"template":"base","ttl_seconds":600}"#;
    let request = format!(
        "POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         traceparent: {parent}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        daemon.key()?,
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    let read = stream.read_to_string(&mut response);
    tokio::time::timeout(patient(SOON), read).await??;
    Ok(response)
}
