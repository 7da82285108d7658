//! The cases with the command line.

use std::process::{Output, Stdio};

use anyhow::{Context as _, Error, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_e2e::{Daemon, setting_or_skip};
use serde_json::{Map, Value, from_value, json};
use tokio::io::AsyncWriteExt as _;

use crate::cases::case_files::Given;
use crate::cases::case_run::{Answer, Driver, run_all, start};

/// A command that ran past `--timeout`, and what the other clients call that.
const TIMED_OUT: (i32, &str) = (124, "timeout");
/// `dayfly` itself failed.
const FAILED: i32 = 125;

struct CommandLine<'a>(&'a Daemon);

/// A failure that has a code.
#[derive(Debug)]
struct Refused {
    code: String,
    words: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.words, self.code)
    }
}

impl std::error::Error for Refused {}

#[tokio::test]
async fn the_command_line_runs_every_case() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = start(&setting).await?;
    run_all(&setting, &daemon, &CommandLine(&daemon)).await?;
    daemon.finish().await
}

impl Driver for CommandLine<'_> {
    const NAME: &'static str = "cli";

    async fn create(&self, template: &str, given: &mut Given) -> Result<String> {
        let mut words = words(&["create", "--template", template]);
        if let Some(ttl) = given.maybe("ttl_seconds") {
            words.extend(["--ttl".to_owned(), ttl.to_string()]);
        }
        if given.take("persistent") == true {
            words.push("--persistent".to_owned());
        }
        words.extend(pairs("--metadata", given.take("metadata"))?);
        words.extend(pairs("--env", given.take("env"))?);
        words.extend(each("--allow", given.take("egress_allowlist"))?);
        id_of(&self.json(&words).await?)
    }

    async fn call(&self, sandbox: &str, call: &str, given: &mut Given) -> Result<Answer> {
        match call {
            "exec" => self.exec(sandbox, given).await,
            "exec_stream" => self.exec_stream(sandbox, given).await,
            "write" | "read" | "list" | "stat" | "exists" | "make_directory" | "move"
            | "remove" => self.files(sandbox, call, given).await,
            "info" | "lifecycle" | "set_lifecycle" | "network" | "set_network" | "ports"
            | "wait_for_port" => self.settings(sandbox, call, given).await,
            _ => self.states(sandbox, call, given).await,
        }
    }

    fn code(error: &Error) -> Option<&str> {
        let refused = error.downcast_ref::<Refused>();
        refused.map(|refused| refused.code.as_str())
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The flag once for each text of a list.
fn each(flag: &str, list: Value) -> Result<Vec<String>> {
    let list: Option<Vec<String>> = from_value(list)?;
    let list = list.unwrap_or_default().into_iter();
    Ok(list.flat_map(|text| [flag.to_owned(), text]).collect())
}

/// The flag once for each pair of an object, as `KEY=VALUE`.
fn pairs(flag: &str, object: Value) -> Result<Vec<String>> {
    let object: Option<std::collections::BTreeMap<String, String>> = from_value(object)?;
    let list: Vec<String> = object
        .unwrap_or_default()
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    each(flag, list.into())
}

fn id_of(made: &Value) -> Result<String> {
    let id = made["id"].as_str().with_context(|| format!("{made}"))?;
    Ok(id.to_owned())
}

/// Some fields of what a command printed; one that is not there is left out.
fn pick(found: &Value, names: &[&str]) -> Answer {
    let fields = names.iter().filter_map(|name| {
        let value = found.get(name)?.clone();
        Some(((*name).to_owned(), value))
    });
    Answer::Fields(Value::Object(fields.collect::<Map<String, Value>>()))
}

/// What a failed command says with `--json`: a line on standard error that has the code.
fn failure(output: &Output) -> Error {
    let text = String::from_utf8_lossy(&output.stderr);
    let report = text.lines().rev().find_map(|line| {
        let report: Value = serde_json::from_str(line).ok()?;
        let code = report["code"].as_str()?.to_owned();
        let words = report["error"].as_str()?.to_owned();
        Some(Refused { code, words })
    });
    match report {
        Some(refused) => refused.into(),
        None => anyhow::anyhow!("{}, without a code: {text}", output.status),
    }
}

impl CommandLine<'_> {
    /// Runs `dayfly` with these words, and with a standard input if there is one to give.
    async fn run(&self, words: &[String], input: Option<&[u8]>) -> Result<Output> {
        let mut command = self.0.command(words)?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn()?;
        if let (Some(bytes), Some(mut stdin)) = (input, child.stdin.take()) {
            // One that was refused does not read its input; its own words say why.
            let _ = stdin.write_all(bytes).await;
        }
        Ok(child.wait_with_output().await?)
    }

    /// What a command prints with `--json`, as it is.
    async fn printed(&self, words: &[String], input: Option<&[u8]>) -> Result<Vec<u8>> {
        let words = [&["--json".to_owned()], words].concat();
        let output = self.run(&words, input).await?;
        if !output.status.success() {
            return Err(failure(&output));
        }
        Ok(output.stdout)
    }

    async fn json(&self, words: &[String]) -> Result<Value> {
        Ok(serde_json::from_slice(&self.printed(words, None).await?)?)
    }

    /// `dayfly exec`, with `first` in front.
    async fn run_exec(&self, first: &str, id: &str, given: &mut Given) -> Result<Output> {
        let mut words = words(&[first, "exec", id]);
        words.extend(pairs("--env", given.take("env"))?);
        if let Some(directory) = given.maybe_text("cwd")? {
            words.extend(["--cwd".to_owned(), directory]);
        }
        if let Some(seconds) = given.maybe("timeout_seconds") {
            words.extend(["--timeout".to_owned(), seconds.to_string()]);
        }
        let input = given.maybe_text("stdin")?;
        if input.is_some() {
            words.push("--stdin".to_owned());
        }
        let command = ["--", "sh", "-c"].map(str::to_owned);
        words.extend(command.into_iter().chain([given.text("cmd")?]));
        self.run(&words, input.as_ref().map(String::as_bytes)).await
    }

    async fn exec(&self, id: &str, given: &mut Given) -> Result<Answer> {
        let output = self.run_exec("--json", id, given).await?;
        // Only a command that was run has a report, however it ended.
        let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else {
            return Err(failure(&output));
        };
        let status = output.status.code().context("ended by a signal")?;
        ensure!(
            report["exit_code"] == status,
            "the exit status is {status}: {report}"
        );
        let is_late = report["reason"] == TIMED_OUT.1;
        ended(status, is_late, &report["stdout"], &report["stderr"])
    }

    /// As people run it: both streams are passed on, and the exit status is the command's.
    async fn exec_stream(&self, id: &str, given: &mut Given) -> Result<Answer> {
        let output = self.run_exec("--quiet", id, given).await?;
        let status = output.status.code().context("ended by a signal")?;
        let stdout = String::from_utf8(output.stdout)?;
        let stderr = String::from_utf8(output.stderr)?;
        ensure!(status != FAILED, "dayfly failed: {stderr}");
        ended(
            status,
            status == TIMED_OUT.0,
            &stdout.into(),
            &stderr.into(),
        )
    }

    async fn files(&self, id: &str, call: &str, given: &mut Given) -> Result<Answer> {
        let first = if call == "move" { "from" } else { "path" };
        let place = format!("{id}:{}", given.text(first)?);
        match call {
            "write" => {
                let bytes = match given.maybe_text("text")? {
                    Some(text) => text.into_bytes(),
                    None => STANDARD.decode(given.text("base64")?)?,
                };
                let words = words(&["cp", "-", &place]);
                let printed = self.printed(&words, Some(&bytes)).await?;
                return Ok(pick(&serde_json::from_slice(&printed)?, &["bytes"]));
            }
            "read" => {
                let bytes = self.printed(&words(&["cp", &place, "-"]), None).await?;
                let base64 = STANDARD.encode(&bytes);
                let text = String::from_utf8(bytes).ok();
                return Ok(Answer::Fields(json!({"base64": base64, "text": text})));
            }
            "list" => return self.list(&place).await,
            "stat" => {
                let entry = self.json(&words(&["fs", "stat", &place])).await?;
                return Ok(pick(&entry, &["size", "is_dir"]));
            }
            "exists" => {
                let exists = match self.json(&words(&["fs", "stat", &place])).await {
                    Ok(_) => true,
                    Err(error) if Self::code(&error) == Some("not_found") => false,
                    Err(error) => return Err(error),
                };
                return Ok(Answer::Fields(json!({"exists": exists})));
            }
            "make_directory" => self.json(&words(&["fs", "mkdir", "-p", &place])).await?,
            "move" => {
                let to = given.text("to")?;
                self.json(&words(&["fs", "mv", &place, &to])).await?
            }
            "remove" if given.take("recursive") == true => {
                self.json(&words(&["fs", "rm", "-r", &place])).await?
            }
            "remove" => self.json(&words(&["fs", "rm", &place])).await?,
            _ => bail!("no such call of files"),
        };
        Ok(Answer::nothing())
    }

    async fn list(&self, place: &str) -> Result<Answer> {
        let listing = self.json(&words(&["fs", "ls", place])).await?;
        let entries = listing["entries"].as_array().context("no entries")?;
        let names = entries.iter().filter_map(|entry| entry["name"].as_str());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        Ok(Answer::Fields(json!({"names": names})))
    }

    async fn settings(&self, id: &str, call: &str, given: &mut Given) -> Result<Answer> {
        match call {
            "info" => {
                let sandbox = self.json(&words(&["info", id])).await?;
                let names = ["status", "template", "persistent", "metadata", "env_names"];
                return Ok(pick(&sandbox, &names));
            }
            "lifecycle" => {
                let lifecycle = self.json(&words(&["ttl", id])).await?;
                return Ok(pick(&lifecycle, &["ttl_seconds", "persistent"]));
            }
            "set_lifecycle" => {
                let mut words = words(&["ttl", id]);
                match given.maybe("ttl_seconds") {
                    Some(Value::Null) => words.push("none".to_owned()),
                    Some(seconds) => words.push(seconds.to_string()),
                    None => {}
                }
                if let Some(persistent) = given.maybe("persistent") {
                    words.extend(["--persistent".to_owned(), persistent.to_string()]);
                }
                self.json(&words).await?;
            }
            "network" => return self.network(id).await,
            "set_network" => {
                let mut words = words(&["net", "set", id]);
                let mode = given.text("mode")?;
                // A list is a mode by itself here.
                if mode != "allowlist" {
                    words.extend(["--network".to_owned(), mode]);
                }
                words.extend(each("--allow", given.take("allow"))?);
                self.json(&words).await?;
            }
            "ports" => {
                let list = self.json(&words(&["port", "ls", id])).await?;
                let list = list.as_array().context("no list of ports")?;
                let mut ports: Vec<u64> = list
                    .iter()
                    .filter_map(|port| port["port"].as_u64())
                    .collect();
                ports.sort_unstable();
                ports.dedup();
                return Ok(Answer::Fields(json!({"ports": ports})));
            }
            "wait_for_port" => {
                let port = given.take("port").to_string();
                let found = self.json(&words(&["port", "wait", id, &port])).await?;
                return Ok(pick(&found, &["port"]));
            }
            _ => bail!("no such setting"),
        }
        Ok(Answer::nothing())
    }

    async fn network(&self, id: &str) -> Result<Answer> {
        let network = self.json(&words(&["net", "show", id])).await?;
        let rules = network["rules"].as_array().context("no rules")?;
        let allow = rules
            .iter()
            .map(|rule| rule.get("host").or(rule.get("cidr")));
        let allow: Vec<Option<&Value>> = allow.collect();
        Ok(Answer::Fields(
            json!({"mode": network["mode"], "allow": allow}),
        ))
    }

    async fn states(&self, id: &str, call: &str, given: &mut Given) -> Result<Answer> {
        match call {
            "fork" => {
                let mut words = words(&["fork", id]);
                words.extend(pairs("--env", given.take("env"))?);
                let forked = self.json(&words).await?;
                return Ok(Answer::Sandbox(id_of(&forked["children"][0])?));
            }
            "snapshot" => {
                let made = self.json(&words(&["snapshot", "create", id])).await?;
                return Ok(Answer::Snapshot(id_of(&made)?));
            }
            "create_from" => {
                let snapshot = given.text("snapshot")?;
                let mut words = words(&["create", "--from-snapshot", &snapshot]);
                words.extend(pairs("--env", given.take("env"))?);
                return Ok(Answer::Sandbox(id_of(&self.json(&words).await?)?));
            }
            "delete_snapshot" => {
                let snapshot = given.text("snapshot")?;
                self.json(&words(&["snapshot", "rm", &snapshot])).await?;
            }
            "rollback" => {
                let snapshot = given.text("snapshot")?;
                let mut words = words(&["rollback", id, &snapshot]);
                words.extend(pairs("--env", given.take("env"))?);
                self.json(&words).await?;
            }
            "pause" | "resume" | "hibernate" | "wake" => {
                let mut words = words(&[call, id]);
                words.extend(pairs("--env", given.take("env"))?);
                self.json(&words).await?;
            }
            "delete" => {
                self.json(&words(&["rm", id])).await?;
            }
            _ => bail!("the driver has no such call"),
        }
        Ok(Answer::nothing())
    }
}

/// The result of a command that was run to its end, or past its time.
fn ended(status: i32, is_late: bool, stdout: &Value, stderr: &Value) -> Result<Answer> {
    if is_late {
        ensure!(
            status == TIMED_OUT.0,
            "ended with {status} when its time was up"
        );
        return Err(Refused {
            code: TIMED_OUT.1.to_owned(),
            words: "the command ran past its time limit".to_owned(),
        }
        .into());
    }
    Ok(Answer::Fields(json!({
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": status,
        "timed_out": false,
    })))
}
