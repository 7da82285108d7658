//! The cases with the Rust client.

use std::time::Duration;

use anyhow::{Context as _, Error, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_api::{
    ChangeLifecycle, Command, CreateContext, CreateSandbox, CreateSnapshot, ExecRequest,
    ForkOptions, ForkSandbox, MakeDirectory, MoveFile, NetworkWish, RollbackSandbox, RunCode,
    RunResult, WakeSandbox,
};
use dayfly_client::{Client, ClientError, CommandEvent, FileBody, RemoveOptions};
use dayfly_e2e::setting_or_skip;
use dayfly_types::ErrorCode;
use serde_json::{Value, from_value, json};

use crate::cases::case_files::Given;
use crate::cases::case_run::{Answer, Driver, run_all, start};

const PORT_WAIT: Duration = Duration::from_secs(60);

struct RustClient(Client);

#[tokio::test]
#[ignore = "soak: every other test uses this client"]
async fn the_rust_client_runs_every_case() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = start(&setting).await?;
    run_all(&setting, &daemon, &RustClient(daemon.client()?)).await?;
    daemon.finish().await
}

impl Driver for RustClient {
    const NAME: &'static str = "rust";

    async fn create(&self, template: &str, given: &mut Given) -> Result<String> {
        let request = CreateSandbox {
            template: Some(template.to_owned()),
            ttl_seconds: from_value(given.take("ttl_seconds"))?,
            persistent: from_value(given.take("persistent"))?,
            metadata: from_value(given.take("metadata"))?,
            env: from_value(given.take("env"))?,
            egress_allowlist: from_value(given.take("egress_allowlist"))?,
            ..CreateSandbox::default()
        };
        Ok(self.0.create_sandbox(&request).await?.id)
    }

    async fn call(&self, sandbox: &str, call: &str, given: &mut Given) -> Result<Answer> {
        match call {
            "exec" => self.exec(sandbox, given).await,
            "exec_stream" => self.exec_stream(sandbox, given).await,
            "run_code" => self.run_code(sandbox, given).await,
            "create_context" => self.create_context(sandbox, given).await,
            "write" | "read" | "list" | "stat" | "exists" | "make_directory" | "move"
            | "remove" => self.files(sandbox, call, given).await,
            "info" | "lifecycle" | "set_lifecycle" | "network" | "set_network" | "ports"
            | "wait_for_port" => self.settings(sandbox, call, given).await,
            _ => self.states(sandbox, call, given).await,
        }
    }

    fn code(error: &Error) -> Option<&str> {
        match error.downcast_ref() {
            Some(ClientError::Api(error)) => Some(&error.code),
            _ => None,
        }
    }
}

fn exec_request(given: &mut Given) -> Result<ExecRequest> {
    Ok(ExecRequest {
        timeout_seconds: from_value(given.take("timeout_seconds"))?,
        env: from_value(given.take("env"))?,
        cwd: given.maybe_text("cwd")?,
        stdin: given.maybe_text("stdin")?,
        ..ExecRequest::new(Command::Shell(given.text("cmd")?))
    })
}

impl RustClient {
    async fn exec(&self, id: &str, given: &mut Given) -> Result<Answer> {
        let result = self.0.exec(id, &exec_request(given)?).await?;
        Ok(Answer::Fields(json!({
            "stdout": result.stdout,
            "stderr": result.stderr,
            "exit_code": result.exit_code,
            "timed_out": result.reason == "timed_out",
        })))
    }

    async fn exec_stream(&self, id: &str, given: &mut Given) -> Result<Answer> {
        let mut stream = self.0.exec_stream(id, &exec_request(given)?).await?;
        let (mut stdout, mut stderr, mut exit) = (String::new(), String::new(), None);
        while let Some(event) = stream.next().await? {
            match event {
                CommandEvent::Stdout(piece) => stdout.push_str(&piece),
                CommandEvent::Stderr(piece) => stderr.push_str(&piece),
                CommandEvent::Exit(event) => exit = Some(event),
            }
        }
        let exit = exit.context("the stream has no exit")?;
        Ok(Answer::Fields(json!({
            "stdout": stdout,
            "stderr": stderr,
            "exit_code": exit.exit_code,
            "timed_out": exit.reason == "timed_out",
        })))
    }

    async fn run_code(&self, id: &str, given: &mut Given) -> Result<Answer> {
        let context = match given.maybe_text("context")? {
            Some(context) => context,
            None => self.own_context(id, given).await?,
        };
        let request = RunCode {
            code: given.text("code")?,
            ..RunCode::default()
        };
        let result = self.0.run_code(id, &context, &request).await?;
        // On the wire an error is one line that begins with its name.
        let error = result.error.as_deref();
        let png = shown(&result, "image/png").map(|text| STANDARD.decode(text.trim()));
        Ok(Answer::Fields(json!({
            "stdout": result.stdout,
            "stderr": result.stderr,
            "text": shown(&result, "text/plain"),
            "has_png": png.transpose()?.is_some_and(|png| png.starts_with(b"\x89PNG")),
            "error_name": error.and_then(|line| line.split(": ").next()),
        })))
    }

    /// The context for code that names none. `Client::run` is no help: it takes the code for what
    /// the template declares, which may be a shell's. A repeat finds the one that is there.
    async fn own_context(&self, id: &str, given: &mut Given) -> Result<String> {
        let language = given.maybe_text("language")?;
        let language = language.unwrap_or_else(|| "python".to_owned());
        let request = CreateContext {
            id: Some(format!("default-{language}")),
            language: Some(language),
            ..CreateContext::default()
        };
        Ok(self.0.create_context(id, &request).await?.id)
    }

    async fn create_context(&self, id: &str, given: &mut Given) -> Result<Answer> {
        let request = CreateContext {
            language: given.maybe_text("language")?,
            ..CreateContext::default()
        };
        let context = self.0.create_context(id, &request).await?;
        Ok(Answer::Context(context.id))
    }

    async fn files(&self, id: &str, call: &str, given: &mut Given) -> Result<Answer> {
        let fields = match call {
            "write" => self.write(id, given).await?,
            "read" => self.read(id, &given.text("path")?).await?,
            "list" => self.list(id, &given.text("path")?).await?,
            "stat" => {
                let entry = self.0.stat(id, &given.text("path")?).await?;
                json!({"size": entry.size, "is_dir": entry.is_dir})
            }
            "exists" => match self.0.stat(id, &given.text("path")?).await {
                Ok(_) => json!({"exists": true}),
                Err(error) if error.api_code() == Some(ErrorCode::NotFound) => {
                    json!({"exists": false})
                }
                Err(error) => return Err(error.into()),
            },
            "make_directory" => {
                let request = MakeDirectory {
                    path: given.text("path")?,
                    mode: None,
                    parents: Some(true),
                    user: None,
                };
                self.0.make_directory(id, &request).await?;
                json!({})
            }
            "move" => {
                let request = MoveFile {
                    from: given.text("from")?,
                    to: given.text("to")?,
                    replace: None,
                    user: None,
                };
                self.0.move_file(id, &request).await?;
                json!({})
            }
            "remove" => {
                let options = RemoveOptions {
                    recursive: given.take("recursive") == true,
                    user: None,
                };
                let path = given.text("path")?;
                self.0.remove_file(id, &path, &options).await?;
                json!({})
            }
            _ => bail!("no such call of files"),
        };
        Ok(Answer::Fields(fields))
    }

    async fn write(&self, id: &str, given: &mut Given) -> Result<Value> {
        let bytes = match given.maybe_text("text")? {
            Some(text) => text.into_bytes(),
            None => STANDARD.decode(given.text("base64")?)?,
        };
        let (path, body) = (given.text("path")?, FileBody::from_bytes(bytes));
        let written = self.0.write_file(id, &path, body).await?;
        Ok(json!({"bytes": written.bytes}))
    }

    async fn read(&self, id: &str, path: &str) -> Result<Value> {
        let mut content = self.0.read_file(id, path).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = content.next().await? {
            bytes.extend_from_slice(&piece);
        }
        let base64 = STANDARD.encode(&bytes);
        Ok(json!({"base64": base64, "text": String::from_utf8(bytes).ok()}))
    }

    async fn list(&self, id: &str, path: &str) -> Result<Value> {
        let entries = self.0.list_directory(id, path).await?.entries;
        let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        Ok(json!({"names": names}))
    }

    async fn settings(&self, id: &str, call: &str, given: &mut Given) -> Result<Answer> {
        let fields = match call {
            "info" => {
                let sandbox = self.0.get_sandbox(id).await?;
                json!({
                    "status": sandbox.status,
                    "template": sandbox.template,
                    "persistent": sandbox.persistent,
                    "metadata": sandbox.metadata,
                    "env_names": sandbox.env_names,
                })
            }
            "lifecycle" => {
                let found = self.0.lifecycle(id).await?;
                json!({"ttl_seconds": found.ttl_seconds, "persistent": found.persistent})
            }
            "set_lifecycle" => {
                // A null takes the limit away, and no field leaves it as it is.
                let ttl = given.maybe("ttl_seconds").map(from_value).transpose()?;
                let change = ChangeLifecycle {
                    ttl_seconds: ttl,
                    persistent: from_value(given.take("persistent"))?,
                    ..ChangeLifecycle::default()
                };
                self.0.set_lifecycle(id, &change).await?;
                json!({})
            }
            "network" => {
                let network = self.0.network(id).await?;
                let rules = network.rules.into_iter();
                let allow: Vec<_> = rules.map(|rule| rule.host.or(rule.cidr)).collect();
                json!({"mode": network.mode.as_str(), "allow": allow})
            }
            "set_network" => {
                let rules: Option<Vec<_>> = from_value(given.take("allow"))?;
                let wish = NetworkWish {
                    mode: from_value(given.take("mode"))?,
                    rules: rules.unwrap_or_default(),
                };
                self.0.set_network(id, &wish).await?;
                json!({})
            }
            "ports" => {
                let ports = self.0.ports(id).await?;
                let mut ports: Vec<u16> = ports.iter().map(|port| port.port).collect();
                ports.sort_unstable();
                ports.dedup();
                json!({"ports": ports})
            }
            "wait_for_port" => {
                let port = from_value(given.take("port"))?;
                let found = self.0.wait_for_port(id, port, PORT_WAIT).await?;
                json!({"port": found.port})
            }
            _ => bail!("no such setting"),
        };
        Ok(Answer::Fields(fields))
    }

    async fn states(&self, id: &str, call: &str, given: &mut Given) -> Result<Answer> {
        match call {
            "fork" => {
                let options = ForkOptions {
                    env: from_value(given.take("env"))?,
                    ..ForkOptions::default()
                };
                let request = ForkSandbox {
                    count: None,
                    options,
                };
                let forked = self.0.fork_sandbox(id, &request).await?;
                let child = forked.children.into_iter().next();
                return Ok(Answer::Sandbox(child.context("no child")?.id));
            }
            "snapshot" => {
                let made = self.0.create_snapshot(id, &CreateSnapshot::default()).await;
                return Ok(Answer::Snapshot(made?.id));
            }
            "create_from" => {
                let request = CreateSandbox {
                    from_snapshot: Some(given.text("snapshot")?),
                    env: from_value(given.take("env"))?,
                    ..CreateSandbox::default()
                };
                return Ok(Answer::Sandbox(self.0.create_sandbox(&request).await?.id));
            }
            "delete_snapshot" => self.0.delete_snapshot(&given.text("snapshot")?).await?,
            "rollback" => {
                let request = RollbackSandbox {
                    snapshot_id: given.text("snapshot")?,
                    env: from_value(given.take("env"))?,
                };
                self.0.rollback_sandbox_with(id, &request).await?;
            }
            "pause" => self.0.pause_sandbox(id).await?,
            "resume" => self.0.resume_sandbox(id).await?,
            "hibernate" => self.0.hibernate_sandbox(id).await?,
            "wake" => {
                let request = WakeSandbox {
                    env: from_value(given.take("env"))?,
                };
                self.0.wake_sandbox_with(id, &request).await?;
            }
            "delete" => self.0.delete_sandbox(id).await?,
            _ => bail!("the driver has no such call"),
        }
        Ok(Answer::nothing())
    }
}

/// The last result that has this type.
fn shown<'a>(result: &'a RunResult, kind: &str) -> Option<&'a String> {
    result.results.iter().rev().find_map(|data| data.get(kind))
}
