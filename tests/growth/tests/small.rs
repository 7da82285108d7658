//! The measurement itself, with numbers that the gate has time for.

use std::process::Command;

/// A page, a look or a create that goes through all sandboxes shows here already, in a program that is
/// not optimised. The figures that are promised are those of the soak.
#[test]
fn no_call_grows_with_the_number_of_sandboxes() {
    let done = Command::new(env!("CARGO_BIN_EXE_dayfly-growth"))
        .args(["--counts", "10,1500", "--running", "10"])
        .args(["--samples", "40", "--at-most", "2.5", "--hot-only"])
        .output()
        .unwrap();
    let table = String::from_utf8_lossy(&done.stdout);
    println!("{table}");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{table}\n{said}");
    // One column for each number, and a line for each call.
    assert!(table.contains("| sandboxes | 10 | 1500 |"), "{table}");
    assert!(
        table.contains("| create |") && table.contains("| delete |"),
        "{table}"
    );
}
