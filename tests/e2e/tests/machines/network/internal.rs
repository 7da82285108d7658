//! An internal network that the operator opened to one project, from real guests of two.

use anyhow::{Result, ensure};
use dayfly_api::{CreateProject, CreateSandbox, CreateToken, NetworkRecord};
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_e2e::{output_of_root, setting_or_skip};
use dayfly_netlab::internet::EVIL;

use super::guest::{get, say};
use super::lab::{Lab, TEMPLATE, allow};

const MIRROR: &str = "10.20.0.10";
const NAME: &str = "mirror.corp.test";
const NETWORK: &str = r#"[{"name": "mirror", "projects": ["default"], "ranges": ["10.20.0.0/24"],
    "hosts": ["mirror.corp.test"], "ports": [80]}]"#;
const RULES: [&str; 2] = ["mirror.corp.test:80", "evil.test:80"];
/// Asks the mirror, whatever its name is said to stand for.
const ASK: &str = r#"python3 -c '
import socket
try:
    s = socket.create_connection(("10.20.0.10", 80), 10)
    s.sendall(b"GET /theirs HTTP/1.1\r\nHost: mirror.corp.test\r\nConnection: close\r\n\r\n")
    print(s.recv(4096).decode(errors="replace"))
except OSError as error:
    print("failed:", error)
'"#;

#[tokio::test]
async fn an_internal_mirror_is_for_one_project_by_its_name_and_leads_nowhere_else() -> Result<()> {
    let setting = setting_or_skip!();
    let arguments = ["--internal-network", NETWORK, "--allow-shared-emulation"];
    let lab = Lab::start_with(&setting, &arguments).await?;
    let internet = &lab.internet;
    internet.add_addresses(&[MIRROR]);
    internet.names.set_addresses(NAME, &[MIRROR]);
    // A name that a rule opens, and whose owner says what they like.
    internet.names.set_addresses("evil.test", &[MIRROR]);
    let mirror = internet.http(MIRROR, 80, "mirror");
    let (elsewhere, canaries) = (internet.sink(MIRROR, 8080), internet.canaries());
    let evil = internet.sink(EVIL, 80);

    let guest = lab.guest(allow(&RULES)).await?;
    let place = format!("{MIRROR}:80");
    let said = guest.probe_one(get(&place, NAME, "/ours")).await?;
    ensure!(said.text().contains("hello from mirror"), "{}", said.text());
    let is_visit = |record: &NetworkRecord| record.internal_network.as_deref() == Some("mirror");
    guest.record("a visit inside", is_visit).await?;

    let ways = [
        get(&place, "evil.test", "/by-another-name"),
        get(&place, MIRROR, "/by-address"),
        say(&place, b"\x01no name at all\n"),
        get(&format!("{MIRROR}:8080"), NAME, "/by-another-port"),
        get("10.20.0.11:80", "10.20.0.11", "/a-neighbour"),
        get("169.254.169.254:80", "169.254.169.254", "/metadata"),
        get("10.0.0.5:80", "10.0.0.5", "/private"),
        get("10.11.0.1:80", "10.11.0.1", "/the-gateway"),
        get("100.64.0.1:80", "100.64.0.1", "/the-way-out"),
    ];
    for report in guest.probe(&ways).await? {
        let said = report.text();
        ensure!(!said.contains("hello from"), "{said}");
    }
    guest.denied("never_address").await?;
    ensure!(mirror.requests() == 1, "{}", mirror.text());

    let theirs = other_project(&lab).await?;
    let wish = CreateSandbox {
        template: Some(TEMPLATE.to_owned()),
        network: Some(allow(&RULES)),
        ..CreateSandbox::default()
    };
    let id = theirs.create_sandbox(&wish).await?.id;
    let said = output_of_root(&theirs, &id, ASK).await?;
    ensure!(!said.contains("hello from"), "{said}");
    ensure!(mirror.requests() == 1, "{}", mirror.text());
    // The same words from the project that may.
    let said = guest.output(ASK).await?;
    ensure!(said.contains("hello from mirror"), "{said}");
    // The lab deletes those of its own project.
    theirs.delete_sandbox(&id).await?;
    for canary in canaries.iter().chain([&elsewhere, &evil]) {
        canary.assert_nothing_came();
    }
    lab.finish_after_visits_inside().await
}

async fn other_project(lab: &Lab) -> Result<Client> {
    let project = CreateProject {
        id: "team-b".to_owned(),
        limits: None,
    };
    lab.client.create_project(&project).await?;
    let wish = CreateToken::default();
    let made = lab.client.create_token(Some("team-b"), &wish).await?;
    Ok(Client::new(ClientConfig {
        url: lab.daemon.url(),
        key: Some(ApiKey::parse(&made.token)?),
    })?)
}
