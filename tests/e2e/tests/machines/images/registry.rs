//! An image of Debian's registry, with TLS, a password and an authority of its own, inside a network
//! that the operator opened: pulled by the jailed program, through the namespace that sandboxes leave
//! the host from.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{
    CreateProject, CreateSandbox, CreateToken, EnsureImage, ImageTemplate, TemplateState,
};
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_e2e::{Daemon, DaemonOptions, Setting, create, output, patient, setting_or_skip, until};
use dayfly_host::netns;
use dayfly_netlab::certificates::Identity;
use dayfly_netlab::{Internet, name_server};
use serde_json::json;
use tempfile::TempDir;

use super::{BAKED, Images, bake};

pub(crate) const ADDRESS: &str = "10.20.0.20";
pub(crate) const HOST: &str = "registry.corp.test";
pub(crate) const PORT: u16 = 5000;
/// Words that no message has by itself.
pub(crate) const PASSWORD: &str = "correct-horse-battery";
const WRONG_PASSWORD: &str = "wrong-horse-battery";
/// bcrypt of [`PASSWORD`].
const PASSWORDS: &str = "puller:$2b$05$abcdefghijklmnopqrstuuSnF5tLPqPFqc0z9CY0HcSLFbSRlL67u\n";
const LISTENING: Duration = Duration::from_secs(20);

/// The registry as a child process in the world outside, which ends with the test.
pub(crate) struct Registry {
    child: Child,
    storage: PathBuf,
    /// What it logged, a line for each request among it.
    log: Arc<Mutex<Vec<String>>>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Registry {
    async fn start(internet: &Internet, directory: &Path, identity: &Identity) -> Result<Self> {
        let write = |name: &str, content: &str| {
            let path = directory.join(name);
            std::fs::write(&path, content)?;
            anyhow::Ok(path.display().to_string())
        };
        let storage = directory.join("storage");
        let settings = json!({
            "version": "0.1",
            "storage": {"filesystem": {"rootdirectory": storage}},
            "http": {
                "addr": format!("{ADDRESS}:{PORT}"),
                "tls": {
                    "certificate": write("certificate.pem", &identity.pem)?,
                    "key": write("key.pem", &identity.key_pem)?,
                },
            },
            "auth": {"htpasswd": {"realm": "a realm", "path": write("passwords", PASSWORDS)?}},
        });
        // JSON is YAML.
        let settings = write("settings.yml", &settings.to_string())?;
        let spawned = netns::in_namespace(&internet.outside, move || {
            Command::new("docker-registry")
                .args(["serve", &settings])
                .env("OTEL_TRACES_EXPORTER", "none")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        });
        let mut child = spawned?.context("docker-registry; .ci/packages installs it")?;
        let log = Arc::new(Mutex::new(Vec::new()));
        keep(child.stdout.take().context("no output")?, &log);
        keep(child.stderr.take().context("no output")?, &log);
        let registry = Self {
            child,
            storage,
            log,
        };
        let is_there = || async {
            let log = registry.lines();
            log.iter()
                .any(|line| line.contains("listening on"))
                .then_some(())
        };
        until("the registry listens", patient(LISTENING), is_there).await?;
        Ok(registry)
    }

    fn lines(&self) -> Vec<String> {
        self.log.lock().map(|log| log.clone()).unwrap_or_default()
    }

    /// Requests for a part of the API with this status.
    pub(crate) fn requests(&self, what: &str, status: u16) -> usize {
        let (path, status) = (format!("\"GET /v2/{what}"), format!("\" {status} "));
        let is_one = |line: &&String| line.contains(&path) && line.contains(&status);
        self.lines().iter().filter(is_one).count()
    }

    /// Where it keeps the bytes of a digest.
    fn blob(&self, digest: &str) -> Result<PathBuf> {
        let hex = digest.strip_prefix("sha256:").context("no digest")?;
        let beginning = hex.get(..2).context("no digest")?;
        let blobs = self.storage.join("docker/registry/v2/blobs/sha256");
        Ok(blobs.join(beginning).join(hex).join("data"))
    }
}

fn keep(from: impl std::io::Read + Send + 'static, log: &Arc<Mutex<Vec<String>>>) {
    let log = Arc::clone(log);
    // Ends with the registry, which ends when nobody reads what it says.
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if let Ok(mut log) = log.lock() {
                log.push(line);
            }
        }
    });
}

/// Dropped in this order: the daemon lets go of the namespace before it is taken down.
pub(crate) struct Lab {
    pub(crate) daemon: Daemon,
    pub(crate) registry: Registry,
    images: Images,
    password: PathBuf,
    pub(crate) internet: Internet,
    _directory: TempDir,
}

impl Lab {
    pub(crate) async fn start(setting: &Setting) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let here = directory.path().canonicalize()?;
        let internet = Internet::make(&here);
        internet.add_addresses(&[ADDRESS]);
        internet.names.set_addresses(HOST, &[ADDRESS]);
        let identity = Identity::new(&[HOST]);
        let registry = Registry::start(&internet, &here, &identity).await?;
        let images = Images::make(&["busybox"])?;
        let (password, settings) = (here.join("password"), here.join("dayflyd.toml"));
        std::fs::write(&settings, settings_text(&here, &password))?;
        let cache = here.join("cache");
        std::fs::create_dir(&cache)?;
        let uplink = format!("netns:{}", internet.egress.display());
        let words = [
            "--egress-uplink",
            &uplink,
            "--egress-resolver",
            name_server::ADDRESS,
        ];
        let options = DaemonOptions {
            arguments: words.map(str::to_owned).to_vec(),
            environment: vec![
                ("DAYFLYD_CONFIG".to_owned(), settings),
                // An image of an earlier run would not be asked for, and ours is of no use later.
                ("DAYFLYD_IMAGE_CACHE".to_owned(), cache),
            ],
            ..DaemonOptions::default()
        };
        let (daemon, _) = Daemon::ready(setting, options).await?;
        Ok(Self {
            daemon,
            registry,
            images,
            password,
            internet,
            _directory: directory,
        })
    }

    /// Pushes the image, and gives the digest of its manifest.
    pub(crate) fn push(&self) -> Result<String> {
        let here = self.images.directory.path().display();
        let digests = format!("{here}/digest");
        let from = format!("oci:{here}/layout:busybox");
        let (to, user) = (
            format!("docker://{ADDRESS}:{PORT}/small:1"),
            format!("--dest-creds=puller:{PASSWORD}"),
        );
        let words = [
            "--insecure-policy",
            "copy",
            "-q",
            "--dest-tls-verify=false",
            "--digestfile",
            &digests,
            &user,
            &from,
            &to,
        ];
        dayfly_netlab::namespace::run_in(&self.internet.outside, "skopeo", &words, "");
        Ok(std::fs::read_to_string(digests)?.trim().to_owned())
    }

    /// Whom to believe that this is the registry.
    pub(crate) fn authority(&self) -> Result<String> {
        let path = self.password.with_file_name("certificate.pem");
        Ok(std::fs::read_to_string(path)?)
    }

    /// Ends the daemon, before what it stands on is taken down.
    pub(crate) async fn finish(self) -> Result<()> {
        self.daemon.finish().await
    }

    fn set_password(&self, text: &str, mode: u32) -> Result<()> {
        std::fs::write(&self.password, text)?;
        let mode = std::fs::Permissions::from_mode(mode);
        Ok(std::fs::set_permissions(&self.password, mode)?)
    }

    fn write_recipe(&self, name: &str, version: &str) -> Result<()> {
        let text = format!(
            "name = '{name}'\nversion = 1\nimage = '{HOST}:{PORT}/small{version}'\n\
             memory_mib = 256\nvcpus = 1\ndisk_mib = 1024\n"
        );
        let path = self.daemon.path().join(format!("recipes/{name}.toml"));
        Ok(std::fs::write(path, text)?)
    }

    /// Bakes a template that must fail, and gives the reason.
    async fn refused(&self, name: &str) -> Result<String> {
        let client = self.daemon.client()?;
        let template = bake(&self.daemon, &client, name).await?;
        ensure!(template.state == TemplateState::Failed, "{template:?}");
        template.detail.context("no reason")
    }
}

fn settings_text(here: &Path, password: &Path) -> String {
    format!(
        "[[internal_network]]\nname = 'registry'\nprojects = ['default']\n\
         ranges = ['{ADDRESS}/32']\nports = [{PORT}]\n\
         [[registry]]\nhost = '{HOST}:{PORT}'\nuser = 'puller'\n\
         password_file = '{}'\nauthority = '{}'\nprojects = ['default']\n",
        password.display(),
        here.join("certificate.pem").display()
    )
}

#[tokio::test]
async fn an_image_is_pulled_through_the_jail_with_the_password_of_the_settings() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let digest = lab.push()?;
    let client = lab.daemon.client()?;
    lab.write_recipe("pulled", ":1")?;
    let pulled = lab.registry.requests("small/manifests/1", 200);
    // The file is read for each bake; the daemon is the same one throughout.
    lab.set_password(PASSWORD, 0o644)?;
    let reason = lab.refused("pulled").await?;
    ensure!(reason.contains("every user"), "{reason}");
    lab.set_password(&format!("{WRONG_PASSWORD}\n"), 0o600)?;
    let reason = lab.refused("pulled").await?;
    ensure!(
        reason.contains("refuses this name and password"),
        "{reason}"
    );
    ensure!(
        lab.registry.requests("small/manifests/1", 401) > 0,
        "nobody asked"
    );
    ensure!(lab.registry.requests("small/manifests/1", 200) == pulled);
    lab.set_password(&format!("{PASSWORD}\n"), 0o600)?;
    let template = bake(&lab.daemon, &client, "pulled").await?;
    ensure!(template.state == TemplateState::Ready, "{template:?}");
    // What the registry gave: the manifest once, the config and the one layer.
    ensure!(lab.registry.requests("small/manifests/1", 200) == pulled + 1);
    let lines = lab.registry.lines().join("\n");
    ensure!(lab.registry.requests("small/blobs/", 200) == 2, "{lines}");
    let sandbox = create(&client, "pulled").await?.id;
    let said = output(&client, &sandbox, "echo $((6*7)) && ls -l /bin/busybox").await?;
    ensure!(said.starts_with("42"), "{said}");
    client.delete_sandbox(&sandbox).await?;
    is_refused_to_another_project(&lab, &client).await?;
    let fetched = lab.registry.requests("small/manifests/1", 200);
    is_built_on(&lab, &client).await?;
    // Of the same name, for the project that has the network: once, for all that it makes of it.
    ensure!(lab.registry.requests("small/manifests/1", 200) == fetched + 1);

    tamper(&lab.registry.blob(&digest)?)?;
    lab.write_recipe("by-digest", &format!("@{digest}"))?;
    let reason = lab.refused("by-digest").await?;
    ensure!(
        reason.contains(&digest) && reason.contains("gives"),
        "{reason}"
    );
    let given = format!("small/manifests/{digest}");
    ensure!(
        lab.registry.requests(&given, 200) == 1,
        "it did not give it"
    );

    let log = std::fs::read_to_string(lab.daemon.path().join("daemon.log"))?;
    ensure!(log.contains("every user"), "the log does not tell of bakes");
    for word in [PASSWORD, WRONG_PASSWORD] {
        let line = log.lines().find(|line| line.contains(word));
        ensure!(line.is_none(), "the log has a password: {line:?}");
    }
    lab.daemon.finish().await
}

/// A project builds on the image, and makes a sandbox of it, without a recipe.
async fn is_built_on(lab: &Lab, client: &Client) -> Result<()> {
    let image = format!("{HOST}:{PORT}/small:1");
    let context = tempfile::tempdir()?;
    let text = format!(
        "FROM {image}\nWORKDIR /site\nRUN echo built > word\n\
         HEALTHCHECK --interval=1s --start-period=60s \
         CMD /bin/busybox wget -q -O /dev/null http://127.0.0.1:8080/word\n\
         CMD [\"/bin/busybox\", \"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/site\"]\n"
    );
    std::fs::write(context.path().join("Dockerfile"), text)?;
    let path = context.path().to_str().context("a path that is no text")?;
    let words = [
        "template",
        "build",
        path,
        "--tag",
        "site",
        "--memory",
        "256",
        "--disk-gb",
        "1",
    ];
    let built = lab.daemon.dayfly(&words).await?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "{said}");
    let site = create(client, "site").await?.id;
    let served = "/bin/busybox wget -q -O - http://127.0.0.1:8080/word";
    ensure!(output(client, &site, served).await? == "built");
    client.delete_sandbox(&site).await?;
    let request = CreateSandbox {
        image: Some(image),
        memory_mb: Some(256),
        disk_gb: Some(1.0),
        ..CreateSandbox::default()
    };
    let plain = client.create_when_ready(&request, |_| {}).await?.id;
    ensure!(output(client, &plain, "test ! -e /site && echo plain").await? == "plain");
    client.delete_sandbox(&plain).await?;
    client.delete_template("site").await?;
    for snapshot in client.list_snapshots(None).await? {
        client.delete_snapshot(&snapshot.id).await?;
    }
    Ok(())
}

/// A project without the network names the image that a recipe has just fetched, and the registry
/// hears nothing of it.
async fn is_refused_to_another_project(lab: &Lab, client: &Client) -> Result<()> {
    let wish = EnsureImage {
        image: format!("{HOST}:{PORT}/small:1"),
        memory_mb: Some(256),
        disk_gb: Some(1.0),
        ..EnsureImage::default()
    };
    let other = other_project(lab, client).await?;
    let before = lab.registry.lines().len();
    let refused = image_made(&other, &wish).await?;
    ensure!(refused.state == TemplateState::Failed, "{refused:?}");
    let reason = refused.detail.unwrap_or_default();
    ensure!(reason.contains("unless the operator allows it"), "{reason}");
    let after = lab.registry.lines();
    ensure!(after.len() == before, "{}", after[before..].join("\n"));
    Ok(())
}

async fn other_project(lab: &Lab, client: &Client) -> Result<Client> {
    let project = CreateProject {
        id: "other".to_owned(),
        limits: None,
    };
    client.create_project(&project).await?;
    let wish = CreateToken::default();
    let made = client.create_token(Some("other"), &wish).await?;
    Ok(Client::new(ClientConfig {
        url: lab.daemon.url(),
        key: Some(ApiKey::parse(&made.token)?),
    })?)
}

async fn image_made(client: &Client, wish: &EnsureImage) -> Result<ImageTemplate> {
    let look = || async {
        let image = client.ensure_image(wish).await.ok()?;
        let is_over = matches!(image.state, TemplateState::Ready | TemplateState::Failed);
        is_over.then_some(image)
    };
    until("the image is made or refused", patient(BAKED), look).await
}

/// Another document that says the same.
fn tamper(manifest: &Path) -> Result<()> {
    let text = std::fs::read_to_string(manifest)?;
    let other = text.replacen(':', ": ", 1);
    ensure!(other != text, "{text}");
    Ok(std::fs::write(manifest, other)?)
}
