//! `dayflyd bench` is the program beside it, and nothing else.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot make its programs must fail"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A bench that tells what it was given, and ends in a way of its own.
const FAKE_BENCH: &str = "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n";

fn installation() -> tempfile::TempDir {
    // Where the daemon was built, so that it can be linked and need not be copied.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let daemon = directory.path().join("dayflyd");
    std::fs::hard_link(env!("CARGO_BIN_EXE_dayflyd"), daemon).unwrap();
    directory
}

fn dayflyd(directory: &Path, arguments: &[&str]) -> Output {
    let daemon = directory.join("dayflyd");
    Command::new(daemon).args(arguments).output().unwrap()
}

fn given_to_the_bench(directory: &Path, arguments: &[&str]) -> String {
    let output = dayflyd(directory, arguments);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_bench_is_given_everything_and_its_status_is_answered() {
    let installation = installation();
    let bench = installation.path().join("dayfly-bench");
    std::fs::write(&bench, FAKE_BENCH).unwrap();
    std::fs::set_permissions(&bench, std::fs::Permissions::from_mode(0o755)).unwrap();
    let given = |arguments: &[&str]| given_to_the_bench(installation.path(), arguments);
    assert_eq!(given(&["bench"]), "<>");
    let create = ["bench", "create", "--data-dir=D", "--n", "10", "--json"];
    assert_eq!(given(&create), "<create><--data-dir=D><--n><10><--json>");
    assert_eq!(given(&["bench", "--help"]), "<--help>");
    assert_eq!(given(&["bench", "fork", "-h"]), "<fork><-h>");
    assert_eq!(given(&["bench", "--version"]), "<--version>");
    assert_eq!(given(&["help", "bench"]), "<help>");
    assert_eq!(given(&["help", "bench", "wake"]), "<help><wake>");
}

#[test]
fn without_the_bench_it_is_said_what_is_missing_where_and_what_to_do() {
    let installation = installation();
    let output = dayflyd(installation.path(), &["bench", "create", "--data-dir", "D"]);
    assert_eq!(output.status.code(), Some(125));
    let here = std::fs::canonicalize(installation.path()).unwrap();
    let expected = format!(
        "error: cannot run the bench: dayfly-bench is not in {}, beside this program; install all \
         programs of a release there\n",
        here.display()
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
}
