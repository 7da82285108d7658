//! The daemon over TLS, with an authority of the host's own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, patient, setting_or_skip, until};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

const SOON: Duration = Duration::from_secs(30);

/// What the openssl program asks for, and whether it is to be had. Its own reservations are off, so
/// that it is the server who refuses.
const PROTOCOLS: [(&str, bool); 9] = [
    ("-tls1_3", true),
    ("-tls1_2", true),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256", true),
    ("-tls1_1 -cipher DEFAULT@SECLEVEL=0", false),
    ("-tls1 -cipher DEFAULT@SECLEVEL=0", false),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA@SECLEVEL=0", false),
    ("-tls1_2 -cipher AES128-GCM-SHA256@SECLEVEL=0", false),
    ("-tls1_2 -cipher aNULL@SECLEVEL=0", false),
    (
        "-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384 -groups ffdhe2048",
        false,
    ),
];

/// A host with files of its own authority.
struct Host {
    daemon: Daemon,
    files: TempDir,
    address: String,
}

impl Host {
    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// `dayfly` as a client elsewhere runs it.
    fn dayfly(&self, authority: &Path, words: &[&str]) -> Result<Command> {
        let mut command = self.daemon.command(words)?;
        command
            .env("DAYFLY_API_URL", format!("https://{}", self.address))
            .env("SSL_CERT_FILE", authority);
        Ok(command)
    }

    async fn openssl(&self, words: &str) -> Result<std::process::Output> {
        let mut command = Command::new("openssl");
        command
            .args(["s_client", "-connect", &self.address])
            .args([
                "-verify_return_error",
                "-verify_hostname",
                "localhost",
                "-CAfile",
            ])
            .arg(self.file("authority.pem"))
            .args(words.split_whitespace())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        Ok(tokio::time::timeout(patient(SOON), command.output()).await??)
    }

    /// The serial number of the certificate that is shown now.
    async fn serial(&self) -> Result<String> {
        let shown = self.openssl("-showcerts").await?;
        let mut child = Command::new("openssl")
            .args(["x509", "-noout", "-serial"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().context("no input")?;
        input.write_all(&shown.stdout).await?;
        drop(input);
        let read = child.wait_with_output().await?;
        ensure!(read.status.success(), "no certificate is shown: {shown:?}");
        Ok(String::from_utf8(read.stdout)?)
    }
}

fn free_address() -> Result<String> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    Ok(format!("localhost:{port}"))
}

async fn host(setting: &dayfly_e2e::Setting) -> Result<Host> {
    let files = tempfile::tempdir()?;
    let directory = files.path().display().to_string();
    let made = Command::new(setting.programs.join("dayflyd"))
        .args(["tls", "init", "--directory", &directory])
        .args([
            "--name",
            "localhost",
            "--name",
            "127.0.0.1",
            "--name",
            "*.localhost",
        ])
        .output()
        .await?;
    ensure!(made.status.success(), "{made:?}");
    let address = free_address()?;
    let file = |name: &str| files.path().join(name).display().to_string();
    let words = [
        ("--tls-listen", address.replace("localhost", "127.0.0.1")),
        ("--tls-certificate", file("server.pem")),
        ("--tls-key", file("server.key")),
    ];
    let words = words
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value]);
    let options = DaemonOptions {
        arguments: words.collect(),
        ..DaemonOptions::default()
    };
    let (daemon, _) = Daemon::ready(setting, options).await?;
    Ok(Host {
        daemon,
        files,
        address,
    })
}

#[tokio::test]
async fn a_certificate_is_renewed_under_a_command_that_runs() -> Result<()> {
    let setting = setting_or_skip!();
    let host = host(&setting).await?;
    let authority = host.file("authority.pem");
    let ran = host
        .dayfly(&authority, &["run", "--", "sh", "-c", "echo $((6*7))"])?
        .output()
        .await?;
    ensure!(ran.stdout == b"42\n", "{ran:?}");
    // Nobody is believed who is not in the file.
    let stranger = host
        .dayfly(Path::new("/dev/null"), &["ls"])?
        .output()
        .await?;
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    ensure!(
        !stranger.status.success() && said.contains("certificate"),
        "{said}"
    );

    for (words, is_to_be_had) in PROTOCOLS {
        let tried = host.openssl(words).await?;
        ensure!(tried.status.success() == is_to_be_had, "{words}: {tried:?}");
    }
    let alpn = host.openssl("-alpn h2,http/1.1").await?;
    let alpn = String::from_utf8_lossy(&alpn.stdout).into_owned();
    ensure!(
        alpn.contains("ALPN protocol: h2") && alpn.contains("Compression: NONE"),
        "{alpn}"
    );

    renewed_under(&host, &authority).await?;
    host.daemon.finish().await
}

/// Renews the certificate while a command waits for its input, which it then gets.
async fn renewed_under(host: &Host, authority: &Path) -> Result<()> {
    let words = [
        "run",
        "-i",
        "--",
        "sh",
        "-c",
        "echo first; read line; echo $line",
    ];
    let mut talking = host.dayfly(authority, &words)?;
    let mut talking = talking
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = talking.stdin.take().context("no input")?;
    let mut lines = BufReader::new(talking.stdout.take().context("no output")?).lines();
    ensure!(
        lines.next_line().await?.as_deref() == Some("first"),
        "no output"
    );
    let (before, control) = (host.serial().await?, host.daemon.role_pid("control")?);
    let directory = host.files.path().display().to_string();
    let renewed = host
        .daemon
        .dayflyd(&["tls", "renew", "--directory", &directory])
        .await?;
    ensure!(renewed.status.success(), "{renewed:?}");
    ensure!(
        host.serial().await? == before,
        "nobody has said that it is there"
    );
    let pid = Pid::from_raw(host.daemon.pid()?).context("no process")?;
    kill_process(pid, Signal::HUP)?;
    let renewed = until("another certificate is shown", patient(SOON), || async {
        host.serial().await.ok().filter(|serial| *serial != before)
    })
    .await?;
    ensure!(
        host.daemon.role_pid("control")? == control,
        "control was started anew"
    );
    input.write_all(b"last\n").await?;
    ensure!(
        lines.next_line().await?.as_deref() == Some("last"),
        "the command was cut off"
    );
    drop(input);
    ensure!(talking.wait().await?.success(), "the command failed");
    // What cannot be read changes nothing.
    std::fs::write(host.file("server.pem"), "nothing")?;
    kill_process(pid, Signal::HUP)?;
    until("the mistake is told", patient(SOON), || async {
        host.daemon
            .last_of_log()
            .contains("server.pem")
            .then_some(())
    })
    .await?;
    ensure!(
        host.serial().await? == renewed,
        "another certificate is shown"
    );
    let ran = host.dayfly(authority, &["ls"])?.output().await?;
    ensure!(ran.status.success(), "{ran:?}");
    Ok(())
}
