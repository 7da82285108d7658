//! Stateful interpreters in real sandboxes: what stays, what comes back, what survives.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_api::{CreateContext, ForkOptions, ForkSandbox, RunCode, RunResult};
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, figure, patient, refusal, setting_or_skip};

const TEMPLATE: &str = "code-interpreter";
const INTERRUPT_MAX: Duration = Duration::from_secs(2);
/// The image with the scientific stack is large; its bake under emulation takes minutes.
const READY_MAX: Duration = Duration::from_secs(1800);

async fn context(client: &Client, sandbox: &str, language: &str) -> Result<String> {
    let request = CreateContext {
        language: Some(language.to_owned()),
        ..CreateContext::default()
    };
    Ok(client.create_context(sandbox, &request).await?.id)
}

async fn run(client: &Client, sandbox: &str, context: &str, code: &str) -> Result<RunResult> {
    let request = RunCode {
        code: code.to_owned(),
        ..RunCode::default()
    };
    let ran = client.run_code(sandbox, context, &request).await;
    ran.with_context(|| code.to_owned())
}

/// What an expression is, as text.
async fn value(client: &Client, sandbox: &str, context: &str, code: &str) -> Result<String> {
    let result = run(client, sandbox, context, code).await?;
    let text = result
        .results
        .first()
        .and_then(|data| data.get("text/plain"));
    text.cloned().with_context(|| format!("{code}: {result:?}"))
}

/// Walks through the parts of a PNG and checks the sum of each.
fn check_png(bytes: &[u8]) -> Result<(u32, u32)> {
    ensure!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "no PNG");
    let number = |at: usize| -> Result<u32> {
        let four = bytes.get(at..at + 4).context("cut off")?;
        Ok(u32::from_be_bytes(four.try_into()?))
    };
    let (mut at, mut size) = (8, None);
    loop {
        let length = usize::try_from(number(at)?)?;
        let part = bytes.get(at + 4..at + 8 + length).context("cut off")?;
        ensure!(
            crc32fast::hash(part) == number(at + 8 + length)?,
            "wrong sum"
        );
        if part.starts_with(b"IHDR") {
            size = Some((number(at + 8)?, number(at + 12)?));
        }
        if part.starts_with(b"IEND") {
            return size.context("no size");
        }
        at += 12 + length;
    }
}

async fn daemon_with_contexts(setting: &dayfly_e2e::Setting) -> Result<Daemon> {
    let daemon = Daemon::start(setting, DaemonOptions::default()).await?;
    daemon.wait_for_template(TEMPLATE, READY_MAX).await?;
    Ok(daemon)
}

#[tokio::test]
async fn a_context_keeps_its_state_and_gives_rich_results() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = daemon_with_contexts(&setting).await?;
    let client = daemon.client()?;
    let id = create(&client, TEMPLATE).await?.id;
    let python = context(&client, &id, "python").await?;
    run(&client, &id, &python, "total = 0").await?;
    for number in 1..=20 {
        run(&client, &id, &python, &format!("total += {number}")).await?;
    }
    ensure!(value(&client, &id, &python, "total").await? == "210");

    results_are_rich(&client, &id, &python).await?;
    contexts_are_apart(&client, &id).await?;
    loops_can_be_ended(&client, &id, &python).await?;
    survives_copies(&client, &id, &python).await?;
    comes_back(&client, &id, &python).await?;
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}

async fn results_are_rich(client: &Client, id: &str, python: &str) -> Result<()> {
    let code = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()";
    let figure_result = run(client, id, python, code).await?;
    let png = figure_result
        .results
        .iter()
        .find_map(|data| data.get("image/png"));
    let png = STANDARD.decode(png.with_context(|| format!("{figure_result:?}"))?.trim())?;
    let (width, height) = check_png(&png)?;
    ensure!(width > 100 && height > 100, "{width} x {height}");
    let code = "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': [3, 4]})";
    let frame = run(client, id, python, code).await?;
    let html = frame.results.iter().find_map(|data| data.get("text/html"));
    ensure!(
        html.is_some_and(|html| html.contains("<table")),
        "{frame:?}"
    );
    let dictionary = run(client, id, python, "{'answer': [42, None]}").await?;
    let json = dictionary
        .results
        .iter()
        .find_map(|data| data.get("application/json"));
    let json: serde_json::Value =
        serde_json::from_str(json.with_context(|| format!("{dictionary:?}"))?)?;
    ensure!(json == serde_json::json!({"answer": [42, null]}), "{json}");

    let raised = run(client, id, python, "print('before')\n1 / 0").await?;
    ensure!(
        raised.stdout == "before\n" && raised.exit_code == 1,
        "{raised:?}"
    );
    let error = raised.error.clone().unwrap_or_default();
    ensure!(error.starts_with("ZeroDivisionError"), "{raised:?}");
    ensure!(
        raised.traceback.iter().any(|line| line.contains("1 / 0")),
        "{raised:?}"
    );
    ensure!(
        value(client, id, python, "total").await? == "210",
        "it is still usable"
    );

    Ok(())
}

/// Two contexts do not see each other, and every language keeps its state.
async fn contexts_are_apart(client: &Client, id: &str) -> Result<()> {
    let other = context(client, id, "python").await?;
    let unknown = run(client, id, &other, "total").await?;
    ensure!(unknown.error.unwrap_or_default().contains("NameError"));
    // The other languages keep state too.
    let bash = context(client, id, "bash").await?;
    run(client, id, &bash, "word=hello; cd /tmp").await?;
    let said = run(client, id, &bash, "echo $word from $PWD").await?;
    ensure!(said.stdout.trim() == "hello from /tmp", "{said:?}");
    let node = context(client, id, "javascript").await?;
    run(client, id, &node, "let six = 6").await?;
    let said = run(client, id, &node, "console.log(six * 7)").await?;
    ensure!(said.stdout.trim() == "42", "{said:?}");

    Ok(())
}

/// An endless loop ends when it is interrupted or its time is up, and the state stays.
async fn loops_can_be_ended(client: &Client, id: &str, python: &str) -> Result<()> {
    let spinning = tokio::spawn({
        let (client, id, python) = (client.clone(), id.to_owned(), python.to_owned());
        async move { run(&client, &id, &python, "while True: pass").await }
    });
    dayfly_e2e::until("it is busy", Duration::from_secs(20), async || {
        let contexts = client.list_contexts(id).await.ok()?;
        contexts
            .iter()
            .find(|c| c.id == python && c.state == "busy")
            .map(drop)
    })
    .await?;
    // The limit of a run that waits behind it counts too.
    let waiting = RunCode {
        code: "total = 0".to_owned(),
        timeout_ms: Some(300),
        ..RunCode::default()
    };
    refusal(client.run_code(id, python, &waiting).await, "timeout")?;
    let start = Instant::now();
    client.interrupt_context(id, python).await?;
    let interrupted = spinning.await??;
    let took = start.elapsed();
    ensure!(interrupted.status == "interrupted", "{interrupted:?}");
    figure!("an endless loop ended {took:?} after its interrupt");
    ensure!(took < patient(INTERRUPT_MAX), "{took:?}");
    ensure!(value(client, id, python, "total").await? == "210");
    let late = RunCode {
        code: "while True: pass".to_owned(),
        timeout_ms: Some(500),
        ..RunCode::default()
    };
    refusal(client.run_code(id, python, &late).await, "timeout")?;
    ensure!(value(client, id, python, "total").await? == "210");
    let once = RunCode {
        code: "total += 1; total".to_owned(),
        run_id: Some("once".to_owned()),
        ..RunCode::default()
    };
    for _ in 0..3 {
        let result = client.run_code(id, python, &once).await?;
        ensure!(
            result.results[0]["text/plain"] == "211",
            "a run was repeated: {result:?}"
        );
    }
    Ok(())
}

/// An interpreter that ended costs its state, and not its context.
async fn comes_back(client: &Client, id: &str, python: &str) -> Result<()> {
    let died = run(client, id, python, "import os; os._exit(1)").await?;
    ensure!(died.status == "died" && !died.state_lost, "{died:?}");
    let next = run(client, id, python, "print(6 * 7)").await?;
    ensure!(next.status == "ok" && next.stdout == "42\n", "{next:?}");
    ensure!(next.state_lost && next.advice.hint.is_some(), "{next:?}");
    let forgot = run(client, id, python, "total").await?;
    ensure!(!forgot.state_lost, "{forgot:?}");
    ensure!(forgot.error.unwrap_or_default().contains("NameError"));
    Ok(())
}

/// Each child of a fork goes on by itself, and sleep changes nothing.
async fn survives_copies(client: &Client, id: &str, python: &str) -> Result<()> {
    let request = ForkSandbox {
        count: Some(2),
        options: ForkOptions::default(),
    };
    let children = client.fork_sandbox(id, &request).await?.children;
    for (index, child) in children.iter().enumerate() {
        run(
            client,
            &child.id,
            python,
            &format!("total += {index} + 100"),
        )
        .await?;
    }
    for (index, child) in children.iter().enumerate() {
        let seen = value(client, &child.id, python, "total").await?;
        ensure!(
            seen == (211 + 100 + index).to_string(),
            "child {index}: {seen}"
        );
        client.delete_sandbox(&child.id).await?;
    }
    client.hibernate_sandbox(id).await?;
    let seen = value(client, id, python, "total").await?;
    ensure!(seen == "211", "after sleep: {seen}");
    Ok(())
}

async fn timed_create(client: &Client, template: &str) -> Result<Duration> {
    let start = Instant::now();
    let id = create(client, template).await?.id;
    ensure!(exec(client, &id, "true").await?.exit_code == 0);
    let took = start.elapsed();
    client.delete_sandbox(&id).await?;
    Ok(took)
}

/// Creates of both templates, in turns.
const PAIRS: usize = 9;

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort();
    values[values.len() / 2]
}

#[tokio::test]
async fn the_first_call_pays_for_no_import() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = daemon_with_contexts(&setting).await?;
    daemon.wait_for_template("base", READY_MAX).await?;
    let client = daemon.client()?;
    const CODE: &str = "import pandas, matplotlib.pyplot";
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let id = create(&client, TEMPLATE).await?.id;
        let python = context(&client, &id, "python").await?;
        for times in [&mut firsts, &mut seconds] {
            let start = Instant::now();
            let result = run(&client, &id, &python, CODE).await?;
            ensure!(result.status == "ok", "{result:?}");
            times.push(start.elapsed());
        }
        client.delete_sandbox(&id).await?;
    }
    let id = create(&client, TEMPLATE).await?.id;
    let start = Instant::now();
    let plain = exec(&client, &id, &format!("python3 -c '{CODE}'")).await?;
    ensure!(plain.exit_code == 0, "{plain:?}");
    let cold = start.elapsed();
    client.delete_sandbox(&id).await?;
    // Each beside the other: what the host does meanwhile, it does to both.
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let base = timed_create(&client, "base").await?;
        let interpreter = timed_create(&client, TEMPLATE).await?;
        ratios.push(interpreter.as_secs_f64() / base.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[PAIRS / 2];
    let (first, second) = (median(firsts), median(seconds));
    figure!("first import {first:?}, second {second:?}, without the warm kernel {cold:?}");
    figure!("create of {TEMPLATE} beside base, median of {PAIRS} pairs: {ratio:.2} times");
    ensure!(
        first <= second * 2,
        "{first:?} is more than twice {second:?}"
    );
    ensure!(ratio <= 1.3, "{ratio:.2} is more than 1.3: {ratios:.2?}");
    daemon.finish().await
}

#[tokio::test]
async fn run_means_what_the_template_says() -> Result<()> {
    let setting = setting_or_skip!();
    let daemon = daemon_with_contexts(&setting).await?;
    let client = daemon.client()?;
    let id = create(&client, TEMPLATE).await?.id;
    let shell = client
        .run(&id, "python -c 'print(41 + 1)' | tee /tmp/answer")
        .await?;
    ensure!(shell.stdout == "42\n" && shell.exit_code == 0, "{shell:?}");
    client.delete_sandbox(&id).await?;
    let base = create(&client, "base").await?.id;
    let shell = client.run(&base, "echo from a shell").await?;
    ensure!(shell.stdout == "from a shell\n", "{shell:?}");
    let Err(error) = client
        .create_context(&base, &CreateContext::default())
        .await
    else {
        bail!("base has no contexts");
    };
    ensure!(error.to_string().contains("no contexts"), "{error}");
    client.delete_sandbox(&base).await?;
    daemon.finish().await
}
