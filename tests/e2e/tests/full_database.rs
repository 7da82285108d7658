//! The disk of the database is full, has room again, and the control process is killed: what was
//! acknowledged is there.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::{CreateProject, CreateToken};
use dayfly_client::{ApiKey, Client, ClientConfig, ClientError};
use dayfly_e2e::{Daemon, DaemonOptions, figure, patient, refusal, setting_or_skip, until};

/// A file system of its own for the database, unmounted when this goes out of scope.
struct SmallDisk {
    mount: PathBuf,
}

impl SmallDisk {
    /// Puts a directory, with what is in it, on a disk of 8 MiB.
    fn under(directory: &Path) -> Result<Self> {
        let of = directory.metadata()?;
        let aside = directory.with_extension("aside");
        std::fs::rename(directory, &aside)?;
        std::fs::create_dir(directory)?;
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "none"])
            .arg(directory))?;
        let disk = Self {
            mount: directory.to_owned(),
        };
        std::os::unix::fs::chown(directory, Some(of.uid()), Some(of.gid()))?;
        std::fs::set_permissions(
            directory,
            std::fs::Permissions::from_mode(of.mode() & 0o7777),
        )?;
        copy(&aside, directory)?;
        std::fs::remove_dir_all(aside)?;
        Ok(disk)
    }

    /// Takes the last byte.
    fn fill(&self) -> Result<()> {
        let mut file = std::fs::File::create(self.mount.join("filler"))?;
        for length in [64 << 10, 4 << 10, 1] {
            while file.write_all(&vec![b'x'; length]).is_ok() {}
        }
        Ok(())
    }

    fn free(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.mount.join("filler"))?)
    }

    /// Puts what is on it back where it was.
    fn away(self) -> Result<()> {
        let aside = self.mount.with_extension("aside");
        run(Command::new("cp")
            .arg("--archive")
            .arg(&self.mount)
            .arg(&aside))?;
        let mount = self.mount.clone();
        drop(self);
        std::fs::remove_dir(&mount)?;
        Ok(std::fs::rename(aside, mount)?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Also where something still uses it: it is gone with its last user.
        let _ = run(Command::new("umount").arg("--lazy").arg(&self.mount));
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let inside = from.join(".");
    run(Command::new("cp").arg("--archive").arg(inside).arg(to))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn with_key(daemon: &Daemon, key: &str) -> Result<Client> {
    Ok(Client::new(ClientConfig {
        url: daemon.url(),
        key: Some(ApiKey::parse(key)?),
    })?)
}

async fn project(client: &Client, id: &str) -> Result<(), ClientError> {
    let wish = CreateProject {
        id: id.to_owned(),
        limits: None,
    };
    client.create_project(&wish).await.map(drop)
}

/// Makes projects until that is refused, and gives how many were made.
async fn fill_up(client: &Client, disk: &SmallDisk) -> Result<u32> {
    disk.fill()?;
    for number in 0..5000 {
        let made = project(client, &format!("full-{number}")).await;
        if made.is_err() {
            let codes = ["store_unavailable", "audit_unavailable"];
            let error = match made {
                Err(ClientError::Api(error)) => error,
                other => bail!("{other:?}"),
            };
            ensure!(
                error.status == 503 && codes.contains(&error.code.as_str()),
                "{error:?}"
            );
            figure!("after {number} projects on a full disk: {}", error.message);
            return Ok(number);
        }
    }
    bail!("the disk was never full")
}

#[tokio::test]
async fn a_full_database_keeps_what_it_acknowledged() -> Result<()> {
    let setting = setting_or_skip!();
    let arguments = ["--parked-engines", "0", "--parked-slots", "0"];
    let options = DaemonOptions {
        arguments: arguments.map(str::to_owned).to_vec(),
        ..DaemonOptions::default()
    };
    let mut daemon = Daemon::start(&setting, options).await?;
    daemon.terminate().await?;
    let disk = SmallDisk::under(&daemon.path().join("control"))?;
    daemon.start_again().await?;
    let client = daemon.client()?;
    let first = client.create_token(None, &CreateToken::default()).await?;
    let made = fill_up(&client, &disk).await?;
    // Revoked or not, it is what was said.
    let prefix = &first.token_info.prefix;
    let holder = with_key(&daemon, &first.token)?;
    let is_revoked = match client.revoke_token(prefix).await {
        Ok(()) => true,
        refused => {
            refusal(refused, "store_unavailable")?;
            false
        }
    };
    ensure!(holder.me().await.is_err() == is_revoked);
    disk.free()?;
    let soon = patient(Duration::from_secs(10));
    until("it can be changed again", soon, || async {
        let health = client.health(Duration::from_secs(5)).await.ok()?;
        (health.status == "ok").then_some(())
    })
    .await?;
    if !is_revoked {
        client.revoke_token(prefix).await?;
    }
    let second = client.create_token(None, &CreateToken::default()).await?;
    project(&client, "after").await?;
    let check = async |daemon: &Daemon| -> Result<()> {
        let revoked = with_key(daemon, &first.token)?.me().await;
        refusal(revoked, "unauthorized").context("the revoked key")?;
        with_key(daemon, &second.token)?.me().await?;
        let projects = daemon.client()?.projects().await?;
        ensure!(projects.iter().any(|project| project.id == "after"));
        let full = projects
            .iter()
            .filter(|project| project.id.starts_with("full-"));
        ensure!(full.count() == usize::try_from(made)?);
        Ok(())
    };
    check(&daemon).await?;
    Daemon::kill(daemon.role_pid("control")?)?;
    until("control is there again", soon, || async {
        client.me().await.ok()
    })
    .await?;
    check(&daemon).await?;
    daemon.terminate().await?;
    disk.away()?;
    daemon.start_again().await?;
    check(&daemon).await?;
    daemon.finish().await
}
