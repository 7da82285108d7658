//! The settings file: TOML whose keys are the flags of the daemon.
//!
//! A key becomes the words that would have been written on the command line, so a value means the
//! same in both places and is checked by the same code.

use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use clap::Command;
use toml::{Table, Value};

/// Flags that a file cannot set: where the file itself is.
const NOT_IN_A_FILE: [&str; 1] = ["config"];

/// Lists of tables. The whole list is one value, and its word is JSON.
const TABLES: [&str; 2] = ["internal_network", "registry"];

/// A table, which is one value in the same way.
const TABLE: &str = "sign_in";

/// What can be set, with the flag of each: `data_dir` is `--data-dir`.
pub(crate) fn keys(command: &Command) -> Vec<String> {
    let arguments = command.get_arguments();
    let shown =
        arguments.filter(|argument| argument.get_long().is_some() && !argument.is_hide_set());
    let names = shown.map(|argument| argument.get_id().to_string());
    let generated = ["help", "version"];
    names
        .filter(|name| {
            !NOT_IN_A_FILE.contains(&name.as_str()) && !generated.contains(&name.as_str())
        })
        .collect()
}

/// The words of one key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) key: String,
    pub(crate) words: Vec<OsString>,
}

/// Reads a settings file. Unknown keys are refused: one that is not understood may have been meant
/// to close something.
pub(crate) fn read(text: &str, command: &Command) -> Result<Vec<Line>> {
    let table: Table = text.parse().context("it is no TOML")?;
    let known = keys(command);
    let mut lines = Vec::new();
    for (key, value) in table {
        if !known.contains(&key) {
            bail!(
                "there is no setting `{key}`; there are: {}",
                known.join(", ")
            );
        }
        let words = words(&key, &value).with_context(|| format!("the value of `{key}`"))?;
        lines.push(Line { key, words });
    }
    Ok(lines)
}

fn words(key: &str, value: &Value) -> Result<Vec<OsString>> {
    let flag = format!("--{}", key.replace('_', "-"));
    let one = |text: String| OsString::from(format!("{flag}={text}"));
    match value {
        Value::Boolean(true) => Ok(vec![OsString::from(flag)]),
        // Off is what a flag is that nobody wrote.
        Value::Boolean(false) => Ok(Vec::new()),
        Value::String(_) | Value::Integer(_) => Ok(vec![one(plain(value)?)]),
        Value::Array(_) if TABLES.contains(&key) => Ok(vec![one(serde_json::to_string(value)?)]),
        Value::Table(_) if key == TABLE => Ok(vec![one(serde_json::to_string(value)?)]),
        // What has no word would be the default, and is not what was written.
        Value::Array(values) if values.is_empty() => Ok(vec![one(String::new())]),
        Value::Array(values) => values.iter().map(|value| plain(value).map(one)).collect(),
        Value::Float(_) | Value::Datetime(_) | Value::Table(_) => {
            bail!("a text, a whole number, true, false, or a list of texts is wanted")
        }
    }
}

fn plain(value: &Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::Table(_) => bail!("a list has texts or whole numbers"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    fn lines(text: &str) -> Result<Vec<Line>> {
        read(text, &Arguments::command())
    }

    fn words_of(text: &str) -> Vec<String> {
        let lines = lines(text).unwrap();
        let words = lines.into_iter().flat_map(|line| line.words);
        words.map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_key_is_the_flag_of_its_name() {
        let text = "listen = '127.0.0.1:1'\nparked_engines = 3\nallow_shared_emulation = true\n\
                    templates = ['base', 'agent']\n";
        let wanted = [
            "--allow-shared-emulation",
            "--listen=127.0.0.1:1",
            "--parked-engines=3",
            "--templates=base",
            "--templates=agent",
        ];
        let mut found = words_of(text);
        found.sort();
        let mut wanted = wanted.map(str::to_owned);
        wanted.sort();
        assert_eq!(found, wanted);
        assert!(words_of("allow_shared_emulation = false").is_empty());
        assert_eq!(words_of("templates = []"), ["--templates="]);
    }

    #[test]
    fn a_list_of_tables_is_one_word() {
        let text = "[[internal_network]]\nname = 'a'\nports = [443]\n\
                    [[internal_network]]\nname = 'b'\n";
        let word = r#"--internal-network=[{"name":"a","ports":[443]},{"name":"b"}]"#;
        assert_eq!(words_of(text), [word]);
        assert_eq!(words_of("internal_network = []"), ["--internal-network=[]"]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let wrong = [
            "listen",
            "listn = '127.0.0.1:1'",
            "config = 'x'",
            "role = 'node'",
            "supervisor = 1",
            "[listen]\na = 1",
            "[internal_network]\nname = 'a'",
            "[[sign_in]]\nissuer = 'a'",
            "[[templates]]\nname = 'a'",
            "egress_rate = 1.5",
            "templates = [['base']]",
        ];
        for text in wrong {
            assert!(lines(text).is_err(), "{text}");
        }
        let error = format!("{:#}", lines("listn = 'x'").unwrap_err());
        assert!(
            error.contains("`listn`") && error.contains("listen"),
            "{error}"
        );
    }

    #[test]
    fn every_setting_is_also_an_environment_variable() {
        let command = Arguments::command();
        for key in keys(&command) {
            let argument = command
                .get_arguments()
                .find(|argument| argument.get_id() == key.as_str());
            let variable = argument.and_then(|argument| argument.get_env()).unwrap();
            assert_eq!(
                variable.to_str().unwrap(),
                format!("DAYFLYD_{}", key.to_uppercase())
            );
        }
    }
}
