//! What the steps of a build reach, counted where it arrives.

use anyhow::{Context, Result, ensure};
use dayfly_e2e::{output, setting_or_skip};
use dayfly_netlab::internet::{ALLOWED, EVIL};

use super::lab::{Lab, TEMPLATE};

/// Both are asked by name, by HTTP and as a plain connection to the address; none of it may fail the step.
const DOCKERFILE: &str = "\
RUN curl -s --max-time 20 http://allowed.test/from-a-step > allowed || true
RUN curl -s --max-time 20 http://evil.test/from-a-step > evil || true
RUN curl -s --max-time 20 http://198.41.0.4/by-address > address || true
RUN (exec 3<>/dev/tcp/198.41.0.4/22 && echo SSH-2.0-step >&3) 2> socket || true
";

async fn build(lab: &Lab, tag: &str, more: &[&str]) -> Result<()> {
    let context = tempfile::tempdir()?;
    // Each build does its own steps: what one has kept says nothing about the network of another.
    let text =
        format!("FROM {TEMPLATE}\nSHELL [\"/bin/bash\", \"-c\"]\nWORKDIR /{tag}\n{DOCKERFILE}");
    std::fs::write(context.path().join("Dockerfile"), text)?;
    let path = context.path().to_str().context("a path that is no text")?;
    let words = [&["template", "build", path, "--tag", tag], more].concat();
    let built = lab.daemon.dayfly(&words).await?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_step_of_a_build_reaches_what_the_build_may_and_nothing_else() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let allowed = lab.internet.http(ALLOWED, 80, "allowed");
    let (evil, plain) = (
        lab.internet.http(EVIL, 80, "evil"),
        lab.internet.sink(EVIL, 22),
    );
    let before = lab.internet.arrivals();
    // The project's default reaches nothing.
    build(&lab, "closed", &[]).await?;
    lab.ensure_nothing_left_since(before)?;
    build(&lab, "listed", &["--allow", "allowed.test"]).await?;
    ensure!(
        allowed.text().contains("/from-a-step"),
        "{:?}",
        allowed.text()
    );
    ensure!(evil.text().is_empty(), "{:?}", evil.text());
    ensure!(plain.text().is_empty(), "{:?}", plain.text());
    let sandbox = dayfly_e2e::create(&lab.client, "listed").await?.id;
    let refusal = output(&lab.client, &sandbox, "cat /listed/evil /listed/address").await?;
    ensure!(refusal.contains("egress_denied"), "{refusal}");
    // What a build may reach ends with it.
    let before = lab.internet.arrivals();
    output(
        &lab.client,
        &sandbox,
        "curl -s --max-time 20 http://allowed.test/later || true",
    )
    .await?;
    lab.ensure_nothing_left_since(before)?;
    lab.client.delete_sandbox(&sandbox).await?;
    // The same steps get through where they may.
    build(&lab, "open", &["--network", "public"]).await?;
    let seen = evil.text();
    ensure!(
        seen.contains("/from-a-step") && seen.contains("/by-address"),
        "{seen:?}"
    );
    ensure!(plain.text().contains("SSH-2.0-step"), "{:?}", plain.text());
    lab.finish().await
}
