//! What is sent, read by a receiver with the published messages.
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use dayfly_testkit::trace_receiver::{TraceReceiver, Value, attribute};
use dayfly_trace::{Attribute, ExportSettings, Exporter, Span, SpanKind, SpanParent};
use dayfly_types::limits::TRACE_QUEUE_REQUESTS_MAX;
use dayfly_types::{SpanId, TraceId};
use http::StatusCode;

fn exporter(url: &str) -> Exporter {
    let settings = ExportSettings::from_variables(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(url.to_owned()),
        "OTEL_EXPORTER_OTLP_HEADERS" => Some("authorization=Bearer%20x".to_owned()),
        "OTEL_SERVICE_NAME" => Some("sandboxes".to_owned()),
        _ => None,
    });
    Exporter::start(settings.unwrap().unwrap()).unwrap()
}

fn span(last: u8) -> Span {
    Span {
        trace: TraceId::new([7; 16]).unwrap(),
        id: SpanId::new([1, 2, 3, 4, 5, 6, 7, last]).unwrap(),
        parent: Some(SpanParent {
            id: SpanId::new([9; 8]).unwrap(),
            is_remote: true,
        }),
        state: Some("vendor=1".into()),
        name: "POST /v1/sandboxes".into(),
        kind: SpanKind::Server,
        began_ns: 1_700_000_000_000_000_001,
        ended_ns: 1_700_000_000_000_000_300,
        attributes: vec![
            ("http.route", Attribute::from("/v1/sandboxes")),
            ("http.response.status_code", Attribute::from(503_u16)),
            ("less", Attribute::Number(-1)),
        ],
        has_failed: true,
    }
}

#[tokio::test]
async fn a_span_arrives_with_all_its_parts() {
    let mut receiver = TraceReceiver::start(&[]).await.unwrap();
    let exporter = exporter(&receiver.url());
    exporter.give(vec![span(1)]);
    let received = receiver.next().await.unwrap();
    assert_eq!(received.headers["authorization"], "Bearer x");
    assert_eq!(received.headers["content-type"], "application/x-protobuf");
    assert_eq!(received.resource()["service.name"], "sandboxes");
    let spans: Vec<_> = received.spans().collect();
    let [found] = spans.as_slice() else {
        panic!("{received:?}");
    };
    let sent = span(1);
    assert_eq!(found.trace_id, sent.trace.bytes());
    assert_eq!(found.span_id, sent.id.bytes());
    assert_eq!(found.parent_span_id, [9; 8]);
    assert_eq!(found.trace_state, "vendor=1");
    assert_eq!(found.name, sent.name);
    assert_eq!(found.kind, 2);
    assert_eq!(found.start_time_unix_nano, sent.began_ns);
    assert_eq!(found.end_time_unix_nano, sent.ended_ns);
    assert_eq!(found.status.as_ref().unwrap().code, 2);
    assert_eq!(found.flags, 0x301);
    let route = Value::StringValue("/v1/sandboxes".to_owned());
    assert_eq!(attribute(found, "http.route"), Some(&route));
    let status = attribute(found, "http.response.status_code");
    assert_eq!(status, Some(&Value::IntValue(503)));
    assert_eq!(attribute(found, "less"), Some(&Value::IntValue(-1)));
    exporter.end().await;
    assert_eq!((exporter.counts().sent(), exporter.counts().lost()), (1, 0));
}

#[tokio::test]
async fn a_receiver_that_is_busy_gets_it_again_and_one_that_refuses_does_not() {
    let busy = StatusCode::SERVICE_UNAVAILABLE;
    let statuses = [busy, StatusCode::OK, StatusCode::BAD_REQUEST];
    let mut receiver = TraceReceiver::start(&statuses).await.unwrap();
    let exporter = exporter(&receiver.url());
    exporter.give(vec![span(1)]);
    let first = receiver.next().await.unwrap();
    let again = receiver.next().await.unwrap();
    assert_eq!(again.message, first.message);
    exporter.give(vec![span(2), span(3)]);
    assert_eq!(receiver.next().await.unwrap().spans().count(), 2);
    exporter.end().await;
    assert_eq!(receiver.try_next(), None);
    assert_eq!((exporter.counts().sent(), exporter.counts().lost()), (1, 2));
}

#[tokio::test]
async fn what_waits_at_the_end_is_sent() {
    let mut receiver = TraceReceiver::start(&[]).await.unwrap();
    let exporter = exporter(&receiver.url());
    for last in 1..=9 {
        exporter.give(vec![span(last)]);
    }
    exporter.end().await;
    assert_eq!(exporter.counts().sent(), 9);
    let mut found = 0;
    while let Some(received) = receiver.try_next() {
        found += received.spans().count();
    }
    assert_eq!(found, 9);
}

/// It takes connections and says nothing; whoever gives spans does not wait.
#[tokio::test]
async fn a_receiver_that_hangs_costs_a_bounded_queue() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let exporter = exporter(&format!("http://{}", listener.local_addr().unwrap()));
    for _ in 0..TRACE_QUEUE_REQUESTS_MAX * 3 {
        exporter.give(vec![span(1)]);
    }
    let least = u64::try_from(TRACE_QUEUE_REQUESTS_MAX * 2).unwrap();
    assert!(exporter.counts().lost() >= least);
    exporter.end().await;
}
