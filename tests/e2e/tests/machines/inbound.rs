//! Services in real sandboxes: reached with leave, by nobody else, and awake when they are needed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::CreatePortLink;
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, create, exec, figure, output, patient, refusal, setting_or_skip, until,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PORT: u16 = 8000;
const ANSWER_DEADLINE: Duration = Duration::from_secs(90);
/// From the answer of a revoke to the end of what came by the link.
const CUT_MAX: Duration = Duration::from_secs(1);

/// What the guest runs: answers with the head that it was sent, holds `/hold` open, and echoes
/// every byte after an upgrade.
const SERVICE: &str = r#"
import socketserver, time
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return
            head += line
        if head.startswith(b"GET /hold"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\nbegin")
            time.sleep(600)
        elif b"upgrade: my-own" in head.lower():
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: my-own\r\n\r\n")
            while True:
                piece = self.request.recv(65536)
                if not piece:
                    return
                self.request.sendall(piece)
        else:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
Server(("127.0.0.1", PORT), Handler).serve_forever()
"#;

async fn serve(client: &Client, id: &str) -> Result<()> {
    let text = SERVICE.replace("PORT", &PORT.to_string());
    let command = format!(
        "cat > service.py <<'END'\n{text}\nEND\nsetsid python3 service.py >/dev/null 2>&1 &"
    );
    output(client, id, &command).await?;
    let found = client.wait_for_port(id, PORT, Duration::from_secs(60));
    ensure!(found.await?.port == PORT);
    Ok(())
}

/// A wait for a port that nothing listens on: it is use of the sandbox while it lasts, ends by
/// itself, and ends with its sandbox.
async fn nothing_to_wait_for(client: &Client, id: &str) -> Result<()> {
    let limit = Duration::from_secs(6);
    let began = Instant::now();
    let waits = client.wait_for_port(id, PORT + 1, limit);
    let looks = async {
        // Longer than a sandbox that nobody uses has an idle time of nothing.
        tokio::time::sleep(limit / 2).await;
        client.lifecycle(id).await
    };
    let (late, lifecycle) = tokio::join!(waits, looks);
    let late = refusal(late, "timeout")?;
    let took = began.elapsed();
    ensure!(took >= limit, "it ended after {took:?}");
    ensure!(late.advice.hint_code.as_deref() == Some("port_timeout"));
    let idle = lifecycle?.idle_for_seconds;
    ensure!(idle == 0, "idle for {idle} s in the middle of a wait");
    let waits = client.wait_for_port(id, PORT + 1, Duration::from_secs(60));
    let deletes = async {
        exec(client, id, "true").await?;
        anyhow::Ok(client.delete_sandbox(id).await?)
    };
    let (ended, deleted) = tokio::join!(waits, deletes);
    deleted?;
    let ended = refusal(ended, "not_found")?;
    ensure!(ended.message.contains("is gone"), "{}", ended.message);
    Ok(())
}

/// Opens a connection to the gateway and sends a head.
async fn send(daemon: &Daemon, id: &str, path: &str, headers: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).await?;
    let host = format!("{PORT}-{id}.localhost:{}", daemon.port());
    let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await?;
    Ok(stream)
}

/// The whole answer to a request whose connection ends with it.
async fn ask(daemon: &Daemon, id: &str, path: &str, headers: &str) -> Result<String> {
    let headers = format!("connection: close\r\n{headers}");
    let mut stream = send(daemon, id, path, &headers).await?;
    let mut answer = Vec::new();
    tokio::time::timeout(ANSWER_DEADLINE, stream.read_to_end(&mut answer))
        .await
        .context("no answer")??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Reads until the text was there.
async fn read_until(stream: &mut TcpStream, text: &str) -> Result<()> {
    let mut seen = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&seen).contains(text) {
            ensure!(stream.read_buf(&mut seen).await? > 0, "it ended");
        }
        Ok(())
    };
    tokio::time::timeout(ANSWER_DEADLINE, reading)
        .await
        .context("no answer")?
}

async fn asleep(client: &Client, id: &str) -> Result<bool> {
    Ok(client.get_sandbox(id).await?.status == "hibernated")
}

#[tokio::test]
async fn a_service_is_reached_with_leave_and_by_nobody_else() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = Daemon::start(&setting, DaemonOptions::default()).await?;
    let client = daemon.client()?;
    let id = create(&client, "base").await?.id;
    serve(&client, &id).await?;
    let key = daemon.key()?;
    let by_key = format!("authorization: Bearer {key}\r\n");
    let answer = ask(&daemon, &id, "/a?b=c", &by_key).await?;
    ensure!(answer.contains("GET /a?b=c HTTP/1.1"), "{answer}");
    ensure!(!answer.contains(&key), "the service saw the key");
    let stranger = ask(&daemon, &id, "/", "").await?;
    ensure!(stranger.starts_with("HTTP/1.1 404"), "{stranger}");
    let nothing = exec(&client, &id, "pkill -f service.py").await?;
    ensure!(nothing.exit_code == 0, "{nothing:?}");
    until("nothing listens", Duration::from_secs(30), || async {
        let answer = ask(&daemon, &id, "/", &by_key).await.ok()?;
        (answer.starts_with("HTTP/1.1 502") && answer.contains("nothing_listens")).then_some(())
    })
    .await?;
    nothing_to_wait_for(&client, &id).await?;
    daemon.finish().await
}

#[tokio::test]
async fn a_link_wakes_a_sandbox_and_a_stranger_does_not() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = Daemon::start(&setting, DaemonOptions::default()).await?;
    let client = daemon.client()?;
    let id = create(&client, "base").await?.id;
    serve(&client, &id).await?;
    let link = client
        .create_port_link(&id, PORT, &CreatePortLink::default())
        .await?;
    let token = link.token.context("a token")?;
    client.hibernate_sandbox(&id).await?;
    ensure!(client.ports(&id).await?.is_empty(), "a sleeper listens");
    for wrong in [
        "",
        "x-dayfly-token: dpt_wrong\r\n",
        "authorization: Bearer dfk_wrong\r\n",
    ] {
        let refused = ask(&daemon, &id, "/", wrong).await?;
        ensure!(refused.starts_with("HTTP/1.1 404"), "{refused}");
    }
    ensure!(asleep(&client, &id).await?, "a stranger woke it");
    let began = Instant::now();
    let answer = ask(&daemon, &id, "/", &format!("x-dayfly-token: {token}\r\n")).await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    ensure!(!answer.contains(&token), "the service saw the token");
    figure!(
        "a visit woke its sandbox and was answered in {:?}",
        began.elapsed()
    );
    daemon.finish().await
}

#[tokio::test]
async fn a_revoked_link_cuts_streams_and_upgrades() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = Daemon::start(&setting, DaemonOptions::default()).await?;
    let client = daemon.client()?;
    let id = create(&client, "base").await?.id;
    serve(&client, &id).await?;
    let wish = CreatePortLink {
        public: Some(true),
        ..CreatePortLink::default()
    };
    let link = client.create_port_link(&id, PORT, &wish).await?;
    let mut held = send(&daemon, &id, "/hold", "").await?;
    read_until(&mut held, "begin").await?;
    let upgrade = "connection: upgrade\r\nupgrade: my-own\r\n";
    let mut tunnel = send(&daemon, &id, "/", upgrade).await?;
    read_until(&mut tunnel, "my-own").await?;
    tunnel.write_all(b"through and back").await?;
    read_until(&mut tunnel, "through and back").await?;
    client.revoke_port_link(&id, PORT, &link.id).await?;
    let revoked = Instant::now();
    for stream in [&mut held, &mut tunnel] {
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = tokio::time::timeout(patient(CUT_MAX), stream.read_to_end(&mut rest))
            .await
            .context("it is still open")?;
    }
    figure!("a revoked link was dead after {:?}", revoked.elapsed());
    let refused = ask(&daemon, &id, "/", "").await?;
    ensure!(refused.starts_with("HTTP/1.1 404"), "{refused}");
    daemon.finish().await
}
