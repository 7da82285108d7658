//! Templates of images of containers: what umoci unpacks is what a guest sees, and what an image says
//! of its use holds.
//!
//! Two images in the gate; with `DAYFLY_E2E_IMAGES=all`, as the soak sets it, six.

pub(crate) mod registry;
mod twins;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{Command as ExecCommand, ExecRequest, Template, TemplateState};
use dayfly_client::{Client, FileBody, WriteOptions};
use dayfly_e2e::{Daemon, DaemonOptions, create, output, patient, setting_or_skip, until};

/// A boot, a capture and digests.
const BAKED: Duration = Duration::from_secs(300);
/// Where the lister lies in a guest, and what the guest's agent makes or writes at its start.
const LISTER: &str = "/tmp/lister";
const NOT_THE_IMAGES: [&str; 15] = [
    LISTER,
    "/dev",
    "/proc",
    "/sys",
    "/run",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/machine-id",
    "/etc/resolv.conf",
    "/var/lib/dayfly",
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/lib/containerd",
    "/etc/dayfly",
    "/lost+found",
];
/// Made by the agent where an image does not have them.
const NEEDED: [&str; 4] = ["/etc", "/tmp", "/var", "/var/lib"];
const SHORT: [&str; 2] = ["user", "layers"];
const ALL: [&str; 6] = ["busybox", "user", "static", "layers", "musl", "debian"];

/// Images of this test, and what umoci made of them.
pub(crate) struct Images {
    directory: tempfile::TempDir,
    lister: PathBuf,
}

impl Images {
    fn make(tags: &[&str]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines/images");
        let lister = directory.path().join("lister");
        run(Command::new("cc")
            .args(["-static", "-O1", "-o"])
            .args([&lister, &here.join("lister.c")]))?;
        let mut script = Command::new("bash");
        script.arg(here.join("make.sh"));
        script.args([directory.path(), &lister]).args(tags);
        run(&mut script)?;
        Ok(Self { directory, lister })
    }

    fn write_recipe(&self, daemon: &Daemon, tag: &str, more: &str) -> Result<()> {
        let here = self.directory.path().display();
        // One of them as Docker would save it.
        let address = match tag {
            "layers" => format!("docker-archive:{here}/layers.tar"),
            _ => format!("oci:{here}/layout:{tag}"),
        };
        let text = format!(
            "name = 'image-{tag}'\nversion = 1\nimage = '{address}'\nmemory_mib = 256\n\
             vcpus = 1\ndisk_mib = 1024\n{more}\n"
        );
        let path = daemon.path().join(format!("recipes/image-{tag}.toml"));
        Ok(std::fs::write(path, text)?)
    }

    /// What umoci unpacked, a line for each name.
    fn expected(&self, tag: &str) -> Result<String> {
        let root = self.directory.path().join(format!("unpacked-{tag}/rootfs"));
        let listed = Command::new(&self.lister)
            .arg(root)
            .args(NOT_THE_IMAGES)
            .output()?;
        Ok(String::from_utf8(listed.stdout)?)
    }

    /// What a guest sees.
    async fn found(&self, client: &Client, id: &str, expected: &str) -> Result<String> {
        let lister = std::fs::read(&self.lister)?;
        let options = WriteOptions {
            mode: Some("0755".to_owned()),
            user: Some("root".to_owned()),
            ..WriteOptions::default()
        };
        let body = FileBody::from_bytes(lister);
        client.write_file_with(id, LISTER, body, &options).await?;
        let words = [LISTER, "/"].into_iter().chain(NOT_THE_IMAGES);
        let mut request = ExecRequest::new(ExecCommand::Argv(words.map(str::to_owned).collect()));
        request.user = Some("root".to_owned());
        let result = client.exec(id, &request).await?;
        ensure!(result.exit_code == 0, "{result:?}");
        let is_made = |line: &&str| {
            let path = line.split(' ').next().unwrap_or_default();
            NEEDED.contains(&path) && !expected.lines().any(|one| one == *line)
        };
        let lines = result.stdout.lines().filter(|line| !is_made(line));
        Ok(lines.map(|line| format!("{line}\n")).collect())
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    Ok(())
}

async fn bake(daemon: &Daemon, client: &Client, name: &str) -> Result<Template> {
    client.bake_template(name).await?;
    let settled = until("the image is baked", patient(BAKED), || async {
        let template = client.template(name).await.ok()?;
        let is_settled = matches!(template.state, TemplateState::Ready | TemplateState::Failed);
        is_settled.then_some(template)
    });
    settled.await.with_context(|| daemon.last_of_log())
}

#[tokio::test]
async fn a_template_of_an_image_has_its_files_and_does_what_it_says() -> Result<()> {
    let setting = setting_or_skip!();
    let is_all = std::env::var_os("DAYFLY_E2E_IMAGES").is_some_and(|which| which == "all");
    let tags: &[&str] = if is_all { &ALL } else { &SHORT };
    let images = Images::make(tags)?;
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    for tag in tags {
        images.write_recipe(&daemon, tag, "")?;
        let template = bake(&daemon, &client, &format!("image-{tag}")).await?;
        ensure!(template.state == TemplateState::Ready, "{template:?}");
        let sandbox = create(&client, &format!("image-{tag}")).await?.id;
        let expected = images.expected(tag)?;
        let found = images.found(&client, &sandbox, &expected).await?;
        ensure!(expected.lines().count() > 0, "umoci unpacked nothing");
        ensure!(
            expected == found,
            "{tag}: {}",
            difference(&expected, &found)
        );
        if *tag == "user" {
            says_what_holds(&client, &sandbox).await?;
        }
        client.delete_sandbox(&sandbox).await?;
    }
    daemon.finish().await
}

/// User, directory, variables and entry point of the image `user`.
async fn says_what_holds(client: &Client, id: &str) -> Result<()> {
    let said = output(
        client,
        id,
        "id -u; id -g; pwd; echo $GREETING; echo $PATH; echo $HOME",
    )
    .await?;
    ensure!(
        said == "77\n78\n/app\ngood morning\n/app/bin:/bin\n/app",
        "{said}"
    );
    // It runs since before the capture; nobody has started it here.
    let served = output(
        client,
        id,
        "/bin/wget -q -O - http://127.0.0.1:8080/index.html",
    )
    .await?;
    ensure!(served == "served by the entry point", "{served}");
    Ok(())
}

fn difference(expected: &str, found: &str) -> String {
    let only = |one: &str, other: &str, mark: &str| {
        let other: std::collections::BTreeSet<&str> = other.lines().collect();
        let lines = one.lines().filter(|line| !other.contains(line)).take(10);
        lines
            .map(|line| format!("{mark} {line}\n"))
            .collect::<String>()
    };
    only(expected, found, "only umoci:") + &only(found, expected, "only the guest:")
}

#[tokio::test]
async fn an_image_that_cannot_be_used_fails_its_own_template_and_says_why() -> Result<()> {
    let setting = setting_or_skip!();
    let images = Images::make(&["busybox"])?;
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    // There is no such name in the layout.
    std::fs::rename(
        images.directory.path().join("unpacked-busybox"),
        images.directory.path().join("unpacked-none"),
    )?;
    images.write_recipe(&daemon, "none", "")?;
    let missing = bake(&daemon, &client, "image-none").await?;
    let reason = missing.detail.clone().unwrap_or_default();
    ensure!(missing.state == TemplateState::Failed, "{missing:?}");
    ensure!(
        reason.contains("busybox") && reason.contains("none"),
        "{reason}"
    );
    // A blob whose bytes are not what its name says.
    let blobs = images.directory.path().join("layout/blobs/sha256");
    for blob in std::fs::read_dir(&blobs)? {
        let path = blob?.path();
        let mut bytes = std::fs::read(&path)?;
        if bytes.len() > 100_000 {
            if let Some(byte) = bytes.get_mut(50_000) {
                *byte ^= 1;
            }
            std::fs::write(&path, bytes)?;
        }
    }
    images.write_recipe(&daemon, "busybox", "")?;
    let tampered = bake(&daemon, &client, "image-busybox").await?;
    let reason = tampered.detail.clone().unwrap_or_default();
    ensure!(tampered.state == TemplateState::Failed, "{tampered:?}");
    ensure!(reason.contains("digest"), "{reason}");
    // Nothing of the program is left, and other templates work.
    let sandbox = create(&client, "base").await?.id;
    client.delete_sandbox(&sandbox).await?;
    daemon.finish().await
}
