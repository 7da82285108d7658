//! `dayfly login --local`.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use crate::support::program::write_with_mode;
use crate::support::{FakeServer, Program};

/// Nobody, on most systems.
const USER: u32 = 65534;

fn data_dir(key: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write_with_mode(&directory.path().join("admin.key"), key, 0o600);
    directory
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Whether this test may become somebody else.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test]
async fn the_key_of_a_daemon_of_this_host_becomes_a_context() {
    let server = FakeServer::start().await;
    let data = data_dir(&format!("{}\n", FakeServer::KEY));
    let program = Program::new();
    let (url, directory) = (server.url(), text(data.path()));
    let words = ["login", "--local", &url, "--data-dir", &directory, "-v"];
    let done = program.run(&words).await;
    assert_eq!((done.status, done.stdout()), (0, ""), "{done:?}");
    assert!(
        done.stderr.starts_with("request: GET /v1/me 200 "),
        "{done:?}"
    );
    assert!(
        done.stderr.contains("logged in to project team-a"),
        "{done:?}"
    );
    assert!(!done.stderr.contains(FakeServer::KEY), "{done:?}");
    let file = std::fs::metadata(program.path(".config/dayfly/config.toml")).unwrap();
    assert_eq!(file.mode() & 0o777, 0o600);
    assert_eq!(program.run(&["whoami"]).await.status, 0);
}

#[tokio::test]
async fn with_sudo_the_file_is_the_callers() {
    if !is_root() {
        return;
    }
    let server = FakeServer::start().await;
    let data = data_dir(FakeServer::KEY);
    let root = Program::new();
    let home = tempfile::tempdir().unwrap();
    chown(home.path(), Some(USER), Some(USER)).unwrap();
    // A place where that user may run it.
    let program = home.path().join("dayfly");
    std::fs::copy(env!("CARGO_BIN_EXE_dayfly"), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let root = root
        .running(&program)
        .with("SUDO_UID", &USER.to_string())
        .with("SUDO_GID", &USER.to_string())
        .with("SUDO_HOME", &text(home.path()));
    let (url, directory) = (server.url(), text(data.path()));
    let words = ["login", "--local", &url, "--data-dir", &directory, "--json"];
    let done = root.run(&words).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(done.json()["project"], "team-a");
    let directory = home.path().join(".config/dayfly");
    for (path, mode) in [
        (directory.clone(), 0o700),
        (directory.join("config.toml"), 0o600),
    ] {
        let found = std::fs::metadata(path).unwrap();
        assert_eq!((found.uid(), found.gid()), (USER, USER));
        assert_eq!(found.mode() & 0o777, mode);
    }
    assert!(!root.path(".config").exists(), "root has none");
}

#[tokio::test]
async fn a_daemon_that_is_not_there_or_not_for_us_is_told() {
    let server = FakeServer::start().await;
    let (url, nothing) = (server.url(), tempfile::tempdir().unwrap());
    let directory = text(nothing.path());
    let words = ["login", "--local", &url, "--data-dir", &directory];
    let done = Program::new().run(&words).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("admin.key"), "{done:?}");
    let wrong = data_dir("wrong");
    let directory = text(wrong.path());
    let words = ["login", "--local", &url, "--data-dir", &directory];
    let done = Program::new().run(&words).await;
    assert_eq!(done.status, 4, "{done:?}");
    assert_eq!(Program::new().run(&["login"]).await.status, 2);
    let words = ["login", &url, "--data-dir", &directory];
    assert_eq!(Program::new().run(&words).await.status, 2);
}
