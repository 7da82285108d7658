//! Packet rules of the calling thread's namespace.

use std::io;

use super::error::Failed;
use super::program::NFT;
use crate::netns::in_fresh_namespace;

/// Loads a file of rules as one transaction: all of it or nothing.
pub(super) fn load(rules: &str) -> Result<(), Failed> {
    NFT.run(&["-f", "-"], rules)
        .map(drop)
        .map_err(Failed::at("load packet rules"))
}

/// All rules, without what they have counted.
pub(super) fn list_all() -> Result<String, Failed> {
    list(&["-s", "list", "ruleset"])
}

/// One table, without what it has counted. `None` when it is not there.
pub(super) fn list_table(name: &str) -> Result<Option<String>, Failed> {
    if !tables()?.iter().any(|table| table == name) {
        return Ok(None);
    }
    list(&["-s", "list", "table", "inet", name]).map(Some)
}

/// Removes a table of the `inet` family. One that is not there is no error.
pub(super) fn remove_table(name: &str) -> Result<(), Failed> {
    // Naming a table makes it, so that there is one to delete.
    load(&format!("table inet {name}\ndelete table inet {name}\n"))
}

/// All counters as the program's JSON.
pub(super) fn counters() -> Result<String, Failed> {
    list(&["-j", "list", "counters"])
}

/// What the rules look like when they are listed, on this host, with its program: loaded once into
/// a namespace of their own, after `prepare`. Its result is kept for as long as they are there.
pub(super) fn canonical<T>(
    rules: String,
    prepare: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<String, Failed> {
    in_fresh_namespace(move || {
        let _kept = prepare()?;
        load(&rules)?;
        list_all()
    })
    .map_err(Failed::at("make a namespace to compare with"))?
}

/// The names of the `inet` tables.
fn tables() -> Result<Vec<String>, Failed> {
    let words = list(&["list", "tables", "inet"])?;
    let names = words
        .lines()
        .filter_map(|line| line.strip_prefix("table inet "));
    Ok(names.map(str::to_owned).collect())
}

fn list(arguments: &[&str]) -> Result<String, Failed> {
    let listed: io::Result<String> = NFT.run(arguments, "");
    listed.map_err(Failed::at("list packet rules"))
}
