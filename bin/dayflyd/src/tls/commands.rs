//! `dayflyd tls`: makes certificates for a host that has no other authority.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use dayfly_host::files::make_directory_durable;
use dayfly_installation::output::print;
use serde::Serialize;

use super::authority::Files;
use super::expiry::{Expiry, expiry, read_first};
use crate::args::{TlsArguments, TlsCommand};

const HOST_NAME: &str = "/proc/sys/kernel/hostname";
const PORT: u16 = 7443;
/// Clients may be given the authority from there; the keys are root's own.
const DIRECTORY_MODE: u32 = 0o755;

/// What was made. The shape is documented; fields are only added.
#[derive(Debug, Serialize)]
struct Made {
    directory: PathBuf,
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    names: Vec<String>,
    authority_expiry: Expiry,
    certificate_expiry: Expiry,
    /// A new authority, which clients do not know yet.
    is_new_authority: bool,
}

pub(crate) fn run(command: &TlsCommand) -> Result<()> {
    match command {
        TlsCommand::Init(arguments) => {
            let names = if arguments.name.is_empty() {
                vec![host_name()?, "localhost".to_owned(), "127.0.0.1".to_owned()]
            } else {
                arguments.name.clone()
            };
            let directory = &arguments.directory;
            make_directory_durable(directory, DIRECTORY_MODE)
                .with_context(|| format!("cannot make {}", directory.display()))?;
            Files::of(&arguments.directory).make(&names)?;
            show(arguments, names, true)
        }
        TlsCommand::Renew(arguments) => {
            let names = Files::of(&arguments.directory).renew(&arguments.name)?;
            show(arguments, names, false)
        }
    }
}

fn host_name() -> Result<String> {
    let name = fs::read_to_string(HOST_NAME).context("cannot find the name of this host")?;
    Ok(name.trim().to_owned())
}

fn show(arguments: &TlsArguments, names: Vec<String>, is_new_authority: bool) -> Result<()> {
    let files = Files::of(&arguments.directory);
    let made = Made {
        authority_expiry: expiry(&read_first(&files.authority)?)?,
        certificate_expiry: expiry(&read_first(&files.server)?)?,
        directory: arguments.directory.clone(),
        authority: files.authority,
        certificate: files.server,
        key: files.server_key,
        names,
        is_new_authority,
    };
    Ok(print(arguments.json, &made, render)?)
}

fn is_host_name(name: &str) -> bool {
    !name.starts_with("*.") && name != "localhost" && name.parse::<IpAddr>().is_err()
}

fn render(made: &Made) -> String {
    let (certificate, key) = (made.certificate.display(), made.key.display());
    let (names, until) = (made.names.join(", "), &made.certificate_expiry.not_after);
    let mut text = format!("certificate  {certificate}\n  for {names}, until {until}\n");
    if !made.is_new_authority {
        text.push_str("The daemon takes it over with `systemctl reload dayflyd`.\n");
        return text;
    }
    let (authority, until) = (made.authority.display(), &made.authority_expiry.not_after);
    text.push_str(&format!(
        "authority    {authority}\n  until {until}; clients need this file\n\n"
    ));
    text.push_str(&format!(
        "In /etc/dayfly/dayflyd.toml:\n  tls_listen = \"0.0.0.0:{PORT}\"\n  tls_certificate = \"{certificate}\"\n  tls_key = \"{key}\"\n"
    ));
    let hosts = made.names.iter().filter(|name| is_host_name(name));
    let hosts: Vec<String> = hosts.map(|name| format!("\"{name}\"")).collect();
    if !hosts.is_empty() {
        // Under other names `/mcp` is refused.
        text.push_str(&format!("  api_host = [{}]\n", hosts.join(", ")));
    }
    if let Some(domain) = made.names.iter().find_map(|name| name.strip_prefix("*.")) {
        text.push_str(&format!("  preview_domain = \"https://{domain}:{PORT}\"\n"));
    }
    let name = made
        .names
        .iter()
        .find(|name| !name.starts_with("*."))
        .map_or("HOST", String::as_str);
    text.push_str(&format!(
        "\nA client, with a copy of authority.pem:\n  export DAYFLY_API_URL=https://{name}:{PORT}\n  export SSL_CERT_FILE=authority.pem          # dayfly, Python\n  export NODE_EXTRA_CA_CERTS=authority.pem    # TypeScript\n"
    ));
    text
}
