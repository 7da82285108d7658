//! The registry of Debian, with TLS and a password, and images that other programs made.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dayfly_oci::Digest;
use dayfly_oci::document::{Image, LayerCompression};
use dayfly_oci::reference::ImageReference;
use dayfly_oci::registry::{
    RegistryAccess, RegistryClient, RegistryCredentials, RegistryError, RegistryReach,
};
use dayfly_oci::source::{FindImageError, ImageOrigin};

use crate::server::{PASSWORD, certificate};

/// bcrypt of [`PASSWORD`].
const PASSWORDS: &str = "puller:$2b$05$abcdefghijklmnopqrstuu2sM.EEHj4jPcCa5rwqJGg1PNBllkZXy\n";
const PROGRAMS: [&str; 3] = ["docker-registry", "skopeo", "umoci"];

fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_there = |program: &str| folders.iter().any(|one| one.join(program).is_file());
    let missing = PROGRAMS.into_iter().find(|program| !is_there(program));
    if let Some(program) = missing {
        println!("skipped: {program} is not installed");
    }
    missing.is_none()
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {told}");
}

/// A layout that umoci made, with one image `v1` of two layers.
fn make_layout(directory: &Path) -> PathBuf {
    let layout = directory.join("layout");
    let image = format!("{}:v1", layout.display());
    let program = std::env::current_exe().unwrap();
    let small = directory.join("small");
    std::fs::write(&small, "a file\n").unwrap();
    run("umoci", &["init", "--layout", layout.to_str().unwrap()]);
    run("umoci", &["new", "--image", &image]);
    // Large enough to come in many pieces.
    for (file, target) in [(&program, "/bin/app"), (&small, "/etc/small")] {
        let file = file.to_str().unwrap();
        run(
            "umoci",
            &["insert", "--rootless", "--image", &image, file, target],
        );
    }
    let cmd = "--config.cmd=/bin/app";
    let env = "--config.env=A=b";
    let platform = ["--architecture=amd64", "--os=linux"];
    run(
        "umoci",
        &[
            "config",
            "--image",
            &image,
            cmd,
            env,
            platform[0],
            platform[1],
        ],
    );
    layout
}

/// The registry as a child process, which ends with the test.
struct Registry {
    child: Child,
    port: u16,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Registry {
    fn start(directory: &Path) -> Self {
        let write = |name: &str, content: &str| {
            let path = directory.join(name);
            std::fs::write(&path, content).unwrap();
            path.display().to_string()
        };
        let settings = serde_json::json!({
            "version": "0.1",
            "storage": {"filesystem": {"rootdirectory": directory.join("storage")}},
            "http": {
                "addr": "127.0.0.1:0",
                "tls": {
                    "certificate": write("certificate.pem", &certificate().certificate),
                    "key": write("key.pem", &certificate().key),
                },
            },
            "auth": {"htpasswd": {"realm": "a realm", "path": write("passwords", PASSWORDS)}},
        });
        // JSON is YAML.
        let settings = write("settings.yml", &settings.to_string());
        let mut child = Command::new("docker-registry")
            .args(["serve", &settings])
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().expect("it ended before it listened").unwrap();
            if let Some((_, rest)) = line.split_once("listening on 127.0.0.1:") {
                let digits = rest.split(|letter: char| !letter.is_ascii_digit());
                break digits.into_iter().next().unwrap().parse().unwrap();
            }
        };
        // It ends when nobody reads what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }

    fn push(&self, from: &str, to: &str) {
        let to = format!("docker://localhost:{}/{to}", self.port);
        let credentials = format!("--dest-creds=puller:{PASSWORD}");
        let options = ["--insecure-policy", "copy", "--dest-tls-verify=false", "-q"];
        let [policy, copy, verify, quiet] = options;
        run(
            "skopeo",
            &[policy, copy, verify, quiet, &credentials, from, &to],
        );
    }

    fn source(&self, image: &str, password: Option<&str>) -> ImageOrigin {
        let reference = format!("localhost:{}/{image}", self.port);
        let reference = ImageReference::parse(&reference).unwrap();
        let access = RegistryAccess {
            credentials: password.map(|password| RegistryCredentials {
                username: "puller".to_owned(),
                password: password.to_owned(),
            }),
            reach: RegistryReach {
                allowed: vec![("localhost".to_owned(), self.port)],
                networks: Vec::new(),
            },
            authority: Some(certificate().certificate.clone().into_bytes()),
            plain_loopback: false,
            resolvers: Vec::new(),
        };
        ImageOrigin::Registry(Box::new(RegistryClient::new(reference, access).unwrap()))
    }
}

/// Finds the image, fetches its layers and looks whether they become what it says.
async fn pull(source: &ImageOrigin) -> Image {
    let image = source.find().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(image.config.command, ["/bin/app"]);
    assert!(
        image
            .config
            .environment
            .contains(&("A".to_owned(), "b".to_owned()))
    );
    assert_eq!(image.layers.len(), 2);
    for layer in &image.layers {
        let into = directory.path().join(layer.digest.hex());
        source.fetch(layer, &into, &|_| ()).await.unwrap();
        let bytes = std::fs::read(&into).unwrap();
        assert_eq!(Digest::of(&bytes), layer.digest);
        let content = match layer.compression {
            LayerCompression::None => bytes,
            LayerCompression::Gzip => {
                let mut content = Vec::new();
                let mut reader = flate2::read::GzDecoder::new(bytes.as_slice());
                std::io::copy(&mut reader, &mut content).unwrap();
                content
            }
            LayerCompression::Zstd => panic!("nobody made one"),
        };
        assert_eq!(Digest::of(&content), layer.diff_id);
    }
    image
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_are_pulled_from_a_real_registry() {
    if !is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let layout = make_layout(directory.path());
    let registry = Registry::start(directory.path());
    let from = format!("oci:{}:v1", layout.display());
    registry.push(&from, "team/app:v1");
    let image = pull(&registry.source("team/app:v1", Some(PASSWORD))).await;
    let by_digest = format!("team/app@{}", image.manifest);
    assert_eq!(
        image,
        pull(&registry.source(&by_digest, Some(PASSWORD))).await
    );
    let refused = async |image: &str, password| {
        let error = registry.source(image, password).find().await.unwrap_err();
        let FindImageError::Registry(error) = error else {
            panic!("{error:?}");
        };
        error
    };
    let error = refused("team/app:v2", Some(PASSWORD)).await;
    assert!(matches!(error, RegistryError::NotFound { .. }), "{error:?}");
    let error = refused("team/app:v1", Some("wrong")).await;
    assert!(matches!(error, RegistryError::Denied { .. }), "{error:?}");
    let error = refused("team/app:v1", None).await;
    assert!(
        matches!(error, RegistryError::NeedsCredentials { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn images_of_other_programs_are_read_from_disk() {
    if !is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let layout = make_layout(directory.path());
    let from = format!("oci:{}:v1", layout.display());
    let of_layout = ImageOrigin::Layout {
        path: layout,
        tag: Some("v1".to_owned()),
    };
    let image = pull(&of_layout).await;
    for (kind, name) in [
        ("docker-archive", "registry.example/app:v1"),
        ("oci-archive", "v1"),
    ] {
        let path = directory.path().join(kind);
        let to = format!("{kind}:{}:{name}", path.display());
        run("skopeo", &["--insecure-policy", "copy", "-q", &from, &to]);
        let name = Some(name.to_owned());
        let found = pull(&ImageOrigin::Archive { path, name }).await;
        let diff_ids = |image: &Image| -> Vec<Digest> {
            let layers = image.layers.iter();
            layers.map(|layer| layer.diff_id.clone()).collect()
        };
        assert_eq!(diff_ids(&found), diff_ids(&image), "{kind}");
        assert_eq!(found.manifest == image.manifest, kind == "oci-archive");
    }
}
