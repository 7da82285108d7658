//! Programs that run inside a network namespace.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use dayfly_host::netns;

/// Runs a program in a namespace with something on its standard input. It must end well.
///
/// # Panics
/// When it did not, with what it complained about.
pub fn run_in(namespace: &Path, program: &'static str, arguments: &[&str], input: &str) -> String {
    let output = try_run_in(namespace, program, arguments, input);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program}: {text}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// As [`run_in`], and how it ended is the caller's affair.
pub fn try_run_in(
    namespace: &Path,
    program: &'static str,
    arguments: &[&str],
    input: &str,
) -> Output {
    let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
    let input = input.to_owned();
    let output = netns::in_namespace(namespace, move || {
        let mut child = Command::new(program)
            .args(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap()
    });
    output.unwrap()
}
