//! The public API over a node in memory, for trying clients against it.
//!
//! `cargo run -p dayfly-control --example serve_fake -- 127.0.0.1:8080 KEY`
//!
//! Commands are not run: each returns its own text, except a few words that make it fail in
//! the ways a client must know (`exit N`, `sleep`, `vanish`, `noise`).
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a tool for tests"
)]

#[path = "../tests/api/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dayfly_control::{ControlConfig, KeyHash, ReconcileSettings, run};
use dayfly_node_api::{BakeState, server, socket};
use dayfly_types::exec::ExitReason;
use dayfly_types::{CellName, NodeId};
use support::fake_node::FakeNode;
use support::{Step, exited, template};

#[tokio::main]
async fn main() {
    tracing_subscriber::fmt()
        .with_env_filter("info")
        .with_writer(std::io::stderr)
        .init();
    let mut arguments = std::env::args().skip(1);
    let listen: SocketAddr = arguments
        .next()
        .expect("an address")
        .parse()
        .expect("an address");
    let key = arguments.next().expect("a key");
    let directory = tempfile::tempdir().unwrap();
    let node_socket = directory.path().join("node.sock");
    let listener = socket::listen(&node_socket).unwrap();
    tokio::spawn(server::serve(
        listener,
        Arc::new(node()),
        std::future::pending(),
    ));
    let config = ControlConfig {
        listener: std::net::TcpListener::bind(listen).unwrap(),
        database: directory.path().join("control.db"),
        node_socket,
        admin_key: KeyHash::of(&key).unwrap(),
        local_key: None,
        cell: CellName::local(),
        node_id: NodeId::parse("fake").unwrap(),
        reconcile: ReconcileSettings::default(),
        gateway: dayfly_control::GatewaySettings::default(),
        internal_networks: Default::default(),
        sign_in: None,
        traces: None,
    };
    let stop = async {
        tokio::signal::ctrl_c().await.unwrap();
    };
    run(config, stop).await.unwrap();
}

fn node() -> FakeNode {
    let node = FakeNode::default();
    let baking = BakeState::Baking {
        percent: 40,
        step: "installing".to_owned(),
    };
    let failed = BakeState::Failed {
        reason: "the image is gone".to_owned(),
    };
    node.set_templates(vec![
        template("base", BakeState::Ready),
        template("code-interpreter", BakeState::Ready),
        template("baking", baking),
        template("failed", failed),
    ]);
    let mut late = exited(137);
    late.exit.reason = ExitReason::TimedOut;
    late.exit.signal = Some(9);
    node.script(
        "exit 3",
        [Step::Stderr("no\n".into()), Step::Exit(exited(3))],
    );
    node.script("sleep", [Step::Stdout("part".into()), Step::Exit(late)]);
    node.script("vanish", [Step::Stdout("part".into()), Step::Vanish]);
    node.script(
        "silence",
        [Step::Pause(Duration::from_secs(35)), Step::Exit(exited(0))],
    );
    let noise = "é х \u{85} \u{2028} \r\n 🦀";
    node.script(
        "noise",
        [
            Step::Stdout(noise.into()),
            Step::Stdout(vec![0xf0, 0x9f].into()),
            Step::Stdout(vec![0xa6, 0x80, 0xff].into()),
            Step::Stderr("x".repeat(1 << 20).into()),
            Step::Exit(exited(0)),
        ],
    );
    node
}
