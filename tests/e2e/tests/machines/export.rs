//! What leaves the host: the audit record, the events and the decisions about egress, to a file and
//! to a webhook.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::{CreateSandbox, CreateToken};
use dayfly_client::{Client, ExportNumbers};
use dayfly_e2e::{Daemon, DaemonOptions, exec, figure, setting_or_skip, until};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Child;

use self::receiver::Receiver;

const KILLS: usize = 20;
const SOON: Duration = Duration::from_secs(30);
const KINDS: [&str; 3] = ["audit", "event", "egress"];
const SECRET: &str = "a secret of more than sixteen bytes";
/// What is killed, in turns.
const VICTIMS: [Victim; 4] = [
    Victim::ToFile,
    Victim::ToWebhook,
    Victim::Control,
    Victim::Everything,
];

#[derive(Debug, Clone, Copy)]
enum Victim {
    ToFile,
    ToWebhook,
    Control,
    Everything,
}

/// A daemon whose record goes to two places.
struct Exported {
    daemon: Daemon,
    place: TempDir,
    receiver: Receiver,
    exporters: [Child; 2],
    /// May reach nothing.
    sandbox: String,
    /// Names that it was denied, each kept by the node.
    denied: Vec<String>,
}

fn start_exporters(daemon: &Daemon, place: &Path, url: &str) -> Result<[Child; 2]> {
    Ok([to_file(daemon, place)?, to_webhook(daemon, place, url)?])
}

fn to_file(daemon: &Daemon, place: &Path) -> Result<Child> {
    start(daemon, &["--file".into(), place.join("export.jsonl")])
}

fn to_webhook(daemon: &Daemon, place: &Path, url: &str) -> Result<Child> {
    let secret = place.join("secret");
    std::fs::write(&secret, SECRET)?;
    let state = place.join("webhook.state");
    let words = ["--webhook", url, "--secret-file"].map(PathBuf::from);
    let words = words.into_iter().chain([secret, "--state".into(), state]);
    start(daemon, &words.collect::<Vec<_>>())
}

fn start(daemon: &Daemon, words: &[PathBuf]) -> Result<Child> {
    let mut command = daemon.command(&["export"])?;
    command
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    Ok(command.spawn()?)
}

impl Exported {
    async fn kill(&mut self, victim: Victim, turn: usize) -> Result<()> {
        match victim {
            Victim::ToFile => self.kill_before_the_note(turn).await?,
            Victim::ToWebhook => self.kill_before_the_response(turn).await?,
            Victim::Control => Daemon::kill(self.daemon.role_pid("control")?)?,
            Victim::Everything => {
                self.be_denied(turn).await?;
                for exporter in &mut self.exporters {
                    exporter.kill().await?;
                }
                self.daemon.kill_all().await?;
                self.daemon.start_again().await?;
                let url = self.receiver.url();
                self.exporters = start_exporters(&self.daemon, self.place.path(), &url)?;
            }
        }
        Ok(())
    }

    /// Lines are in the file, and the place cannot be noted: a directory is in its way.
    async fn kill_before_the_note(&mut self, turn: usize) -> Result<()> {
        let [state, aside] =
            ["export.jsonl.state", "aside"].map(|name| self.place.path().join(name));
        let client = self.daemon.client()?;
        // What came before is noted, so that the place stays as it is.
        until("everything is noted", SOON, || async {
            let kept = everything(&client).await.ok()?;
            let last = kept.iter().rfind(|line| line["kind"] == "audit")?;
            let noted: Value = serde_json::from_slice(&std::fs::read(&state).ok()?).ok()?;
            (noted["audit"] == last["number"]).then_some(())
        })
        .await?;
        let lines = self.file()?.len();
        std::fs::rename(&state, &aside)?;
        std::fs::create_dir(&state)?;
        self.act(turn).await?;
        until("lines are written", SOON, || {
            let written = self.file().ok().filter(|now| now.len() > lines);
            async move { written }
        })
        .await?;
        self.exporters[0].kill().await?;
        std::fs::remove_dir(&state)?;
        std::fs::rename(&aside, &state)?;
        self.exporters[0] = to_file(&self.daemon, self.place.path())?;
        Ok(())
    }

    /// The receiver has the lines, and its response never comes.
    async fn kill_before_the_response(&mut self, turn: usize) -> Result<()> {
        self.receiver.hold();
        self.act(turn).await?;
        until("a delivery is held", SOON, || async {
            self.receiver.is_holding().then_some(())
        })
        .await?;
        self.exporters[1].kill().await?;
        let url = self.receiver.url();
        self.exporters[1] = to_webhook(&self.daemon, self.place.path(), &url)?;
        Ok(())
    }

    /// Something for the record, whoever was killed.
    async fn act(&self, turn: usize) -> Result<()> {
        let wish = CreateToken {
            label: Some(format!("turn {turn}")),
            ..CreateToken::default()
        };
        let client = self.daemon.client()?;
        let made = until("a key is made", SOON, || async {
            client.create_token(None, &wish).await.ok()
        });
        let made = made.await?;
        client.revoke_token(&made.token_info.prefix).await?;
        Ok(())
    }

    /// A decision about egress. One that the node was not told of before it ends is lost.
    async fn be_denied(&mut self, turn: usize) -> Result<()> {
        let name = format!("turn-{turn}.example");
        let lookup = format!("getent hosts {name}; true");
        let client = self.daemon.client()?;
        exec(&client, &self.sandbox, &lookup).await?;
        until("the decision is kept", SOON, || async {
            let kept = everything(&client).await.ok()?;
            let is_there = kept.iter().any(|line| line["record"]["name"] == name);
            is_there.then_some(())
        })
        .await?;
        self.denied.push(name);
        Ok(())
    }

    fn file(&self) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.place.path().join("export.jsonl"))?;
        // The last line may be under way.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .map(|line| Ok(serde_json::from_str(line)?))
            .collect()
    }
}

#[tokio::test]
async fn twenty_kills_lose_and_invent_nothing() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let place = tempfile::tempdir()?;
    let receiver = Receiver::start(SECRET).await?;
    let exporters = start_exporters(&daemon, place.path(), &receiver.url())?;
    let sandbox = client.create_sandbox(&CreateSandbox::default()).await?;
    let mut exported = Exported {
        daemon,
        place,
        receiver,
        exporters,
        sandbox: sandbox.id,
        denied: Vec::new(),
    };
    for turn in 0..KILLS {
        exported.act(turn).await?;
        exported.kill(VICTIMS[turn % VICTIMS.len()], turn).await?;
    }
    exported.act(KILLS).await?;
    exported.be_denied(KILLS).await?;
    client.delete_sandbox(&exported.sandbox).await?;
    let kept = everything(&client).await?;
    ensure!(kept.len() >= 2 * KILLS, "{} lines", kept.len());
    for (to, lines) in [
        ("file", whole(&kept, || exported.file()).await?),
        (
            "webhook",
            whole(&kept, || Ok(exported.receiver.lines())).await?,
        ),
    ] {
        let repeated = check(&kept, &lines).with_context(|| format!("to the {to}"))?;
        has_names(&lines, &exported.denied).with_context(|| format!("to the {to}"))?;
        // Each of its exporter's kills was between the delivery and the note.
        ensure!(
            repeated >= KILLS / VICTIMS.len(),
            "{repeated} lines came again to the {to}"
        );
        figure!(
            "{KILLS} kills, {} lines to the {to}: all {} there, in order, {repeated} more than once",
            lines.len(),
            kept.len()
        );
    }
    for exporter in &mut exported.exporters {
        exporter.kill().await?;
    }
    exported.daemon.finish().await
}

/// What the server has, as lines, of each kind in order.
async fn everything(client: &Client) -> Result<Vec<Value>> {
    let (mut lines, mut place) = (Vec::new(), ExportNumbers::default());
    loop {
        let page = client.export(place, 7, Duration::ZERO).await?;
        let egress = page.egress.told().context("the node does not respond")?;
        if page.audit.is_empty() && page.events.is_empty() && egress.through == place.egress {
            return Ok(lines);
        }
        for entry in &page.audit {
            place.audit = entry.number;
            lines.push(of_kind("audit", serde_json::to_value(entry)?));
        }
        for event in &page.events {
            place.event = event.cursor.parse()?;
            lines.push(of_kind("event", serde_json::to_value(event)?));
        }
        place.egress = egress.through;
        for decision in &egress.decisions {
            lines.push(of_kind("egress", serde_json::to_value(decision)?));
        }
    }
}

/// Every name is in a decision: what the server forgot would be missing on both sides.
fn has_names(lines: &[Value], names: &[String]) -> Result<()> {
    ensure!(!names.is_empty(), "nothing was denied");
    for name in names {
        let is_there = lines.iter().any(|line| line["record"]["name"] == *name);
        ensure!(is_there, "the decision about {name} is lost");
    }
    Ok(())
}

fn of_kind(kind: &str, mut line: Value) -> Value {
    line["kind"] = kind.into();
    line
}

/// The lines, once the last one of each kind is there.
async fn whole(kept: &[Value], mut read: impl FnMut() -> Result<Vec<Value>>) -> Result<Vec<Value>> {
    let last = |kind: &str| kept.iter().rfind(|line| line["kind"] == kind);
    let lasts: Vec<&Value> = KINDS.iter().filter_map(|kind| last(kind)).collect();
    ensure!(lasts.len() == KINDS.len(), "a kind is missing");
    until("the last lines are there", SOON, || {
        let has_all = |lines: &Vec<Value>| lasts.iter().all(|last| lines.contains(last));
        let lines = read().ok().filter(has_all);
        async move { lines }
    })
    .await
}

fn number(line: &Value) -> Result<u64> {
    match line["kind"].as_str() {
        Some("audit" | "egress") => line["number"].as_u64().context("no number"),
        Some("event") => Ok(line["cursor"].as_str().context("no cursor")?.parse()?),
        _ => bail!("{line} should not be there"),
    }
}

/// Every line at least once, in order but for what is repeated, and none that the server has not.
/// Says how many came more than once.
fn check(kept: &[Value], lines: &[Value]) -> Result<usize> {
    let mut furthest: BTreeMap<String, u64> = BTreeMap::new();
    let mut repeated = 0;
    for line in lines {
        ensure!(kept.contains(line), "{line} is invented");
        let kind = line["kind"].to_string();
        let so_far = furthest.entry(kind).or_default();
        let number = number(line)?;
        ensure!(number <= *so_far + 1, "{line} comes behind {so_far}");
        repeated += usize::from(number <= *so_far);
        *so_far = number.max(*so_far);
    }
    for line in kept {
        ensure!(lines.contains(line), "{line} is lost");
    }
    Ok(repeated)
}

/// A webhook that checks signatures, and now and then refuses what it has read, or never responds.
mod receiver {
    use std::sync::{Arc, Mutex, PoisonError};

    use anyhow::{Context, Result, ensure};
    use ring::hmac;
    use serde_json::Value;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinHandle;

    /// One in so many deliveries is refused.
    const REFUSED_EVERY: usize = 5;

    #[derive(Debug, Default)]
    struct Taken {
        lines: Vec<Value>,
        deliveries: usize,
        is_to_hold: bool,
        /// Taken, and without a response for as long as they are here.
        held: Vec<TcpStream>,
    }

    pub(super) struct Receiver {
        port: u16,
        taken: Arc<Mutex<Taken>>,
        serving: JoinHandle<()>,
    }

    impl Drop for Receiver {
        fn drop(&mut self) {
            self.serving.abort();
        }
    }

    impl Receiver {
        pub(super) async fn start(secret: &str) -> Result<Self> {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let port = listener.local_addr()?.port();
            let taken = Arc::new(Mutex::new(Taken::default()));
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
            let shared = Arc::clone(&taken);
            let serving = tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    // A connection that breaks off is one of a killed exporter.
                    let _ = serve(stream, &key, &shared).await;
                }
            });
            Ok(Self {
                port,
                taken,
                serving,
            })
        }

        pub(super) fn url(&self) -> String {
            format!("http://127.0.0.1:{}/hook?for=test", self.port)
        }

        pub(super) fn lines(&self) -> Vec<Value> {
            let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.lines.clone()
        }

        /// Keeps the response to the next delivery back.
        pub(super) fn hold(&self) {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.held.clear();
            taken.is_to_hold = true;
        }

        pub(super) fn is_holding(&self) -> bool {
            let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            !taken.held.is_empty()
        }
    }

    /// One request on a connection.
    async fn serve(mut stream: TcpStream, key: &hmac::Key, taken: &Mutex<Taken>) -> Result<()> {
        let (head, body) = read(&mut stream).await?;
        ensure!(head.starts_with("POST /hook?for=test HTTP/1.1"), "{head}");
        let signature = header(&head, "dayfly-signature")?;
        let (time, code) = signature
            .strip_prefix("t=")
            .and_then(|text| text.split_once(",v1="))
            .context("no signature")?;
        let signed = [format!("{time}.").as_bytes(), &body].concat();
        let code: Vec<u8> = (0..code.len() / 2)
            .map(|at| u8::from_str_radix(&code[2 * at..2 * at + 2], 16))
            .collect::<Result<_, _>>()?;
        ensure!(
            hmac::verify(key, &signed, &code).is_ok(),
            "a wrong signature"
        );
        let lines = body
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let lines: Vec<Value> = lines
            .map(serde_json::from_slice)
            .collect::<Result<_, _>>()?;
        let is_taken = {
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.deliveries += 1;
            taken.lines.extend(lines);
            if std::mem::take(&mut taken.is_to_hold) {
                taken.held.push(stream);
                return Ok(());
            }
            // It has them, and its response may say otherwise: they come again.
            !taken.deliveries.is_multiple_of(REFUSED_EVERY)
        };
        let status = if is_taken {
            "204 No Content"
        } else {
            "503 Not Now"
        };
        let response = format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n");
        stream.write_all(response.as_bytes()).await?;
        Ok(stream.shutdown().await?)
    }

    async fn read(stream: &mut TcpStream) -> Result<(String, Vec<u8>)> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            ensure!(stream.read_buf(&mut bytes).await? > 0, "it broke off");
        };
        let head = String::from_utf8(bytes[..end].to_vec())?;
        let length: usize = header(&head, "content-length")?.parse()?;
        let mut body = bytes.split_off(end + 4);
        while body.len() < length {
            ensure!(stream.read_buf(&mut body).await? > 0, "it broke off");
        }
        Ok((head, body))
    }

    fn header<'a>(head: &'a str, name: &str) -> Result<&'a str> {
        let mut lines = head.lines();
        let found = lines.find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        found.with_context(|| format!("no header {name}"))
    }
}
