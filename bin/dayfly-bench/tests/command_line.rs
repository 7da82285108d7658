//! The bench is asked for with `dayflyd bench`, and says so.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot run the program must fail"
)]

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_dayfly-bench");
    Command::new(program).args(arguments).output().unwrap()
}

#[test]
fn its_help_names_the_command_that_people_give() {
    let cases: [(&[&str], &str); 4] = [
        (&["--help"], "Usage: dayflyd bench <COMMAND>\n"),
        (&["help"], "Usage: dayflyd bench <COMMAND>\n"),
        (
            &["create", "--help"],
            "Usage: dayflyd bench create [OPTIONS] --data-dir <DIR>\n",
        ),
        (
            &["help", "fork"],
            "Usage: dayflyd bench fork [OPTIONS] --data-dir <DIR>\n",
        ),
    ];
    for (arguments, usage) in cases {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(usage), "{text}");
    }
}

#[test]
fn what_it_does_not_know_is_wrong_usage_and_no_samples_are_a_failure() {
    assert_eq!(bench(&[]).status.code(), Some(2));
    assert_eq!(bench(&["create"]).status.code(), Some(2));
    let none = bench(&["create", "--data-dir", "/nonexistent", "--n", "0"]);
    assert_eq!(none.status.code(), Some(125));
    let said = String::from_utf8(none.stderr).unwrap();
    assert_eq!(said, "error: --n must be at least 1\n");
    let slow = ["burst", "--data-dir", "/nonexistent", "--rate", "0"];
    assert_eq!(bench(&slow).status.code(), Some(125));
}
