//! Whether a sandbox that is there already has the network that `--allow` asks for.

use std::collections::BTreeSet;

use dayfly_api::{NetworkMode, NetworkPreset, NetworkRule};
use dayfly_client::Client;
use dayfly_types::egress::{HostPattern, Ipv4Network, Ports};

use crate::error::ToolError;

const PRESET: &str = "preset:";

/// What an allowlist lets through: hosts or ranges, each with its ports.
type Reach = BTreeSet<(String, Vec<u16>)>;

/// Refuses a sandbox that reaches something else than was asked for. Whoever gave `--allow` relies
/// on it, and changing the network of a sandbox that others use is not for this program to decide.
pub(crate) async fn check(
    client: &Client,
    sandbox: &str,
    allow: &[String],
) -> Result<(), ToolError> {
    let network = client.network(sandbox).await?;
    let has_preset = allow.iter().any(|text| text.starts_with(PRESET));
    let presets = if has_preset {
        client.network_presets().await?
    } else {
        Vec::new()
    };
    let has: Reach = network.rules.iter().map(in_parts).collect();
    let is_same = match wanted(allow, &presets) {
        Some(Wanted::Public) => network.mode == NetworkMode::Public,
        Some(Wanted::Allowlist(wanted)) => network.mode == NetworkMode::Allowlist && wanted == has,
        None => false,
    };
    if is_same {
        return Ok(());
    }
    let rules: Vec<&str> = network.rules.iter().map(|rule| rule.id.as_str()).collect();
    Err(ToolError::hinted(
        format!(
            "the sandbox is there already, and its network is not what --allow says: it is {} ({})",
            network.mode.as_str(),
            rules.join(", ")
        ),
        "start the server without --allow or with another --name, or change the network of the \
         sandbox with `dayfly net`",
    ))
}

enum Wanted {
    Public,
    Allowlist(Reach),
}

/// What the texts of rules mean; `None` when one of them means nothing.
fn wanted(allow: &[String], presets: &[NetworkPreset]) -> Option<Wanted> {
    let mut reach = Reach::new();
    for text in allow {
        if let Some(name) = text.strip_prefix(PRESET) {
            let preset = presets.iter().find(|preset| preset.name == name)?;
            if preset.mode == NetworkMode::Public {
                return Some(Wanted::Public);
            }
            reach.extend(preset.rules.iter().map(in_parts));
        } else {
            reach.insert(one(text)?);
        }
    }
    Some(Wanted::Allowlist(reach))
}

fn in_parts(rule: &NetworkRule) -> (String, Vec<u16>) {
    let target = rule.host.clone().or_else(|| rule.cidr.clone());
    (target.unwrap_or_default(), rule.ports.clone())
}

/// A text as the server writes it.
fn one(text: &str) -> Option<(String, Vec<u16>)> {
    let (target, ports) = match text.split_once(':') {
        Some((target, ports)) => {
            let ports: Option<Vec<u16>> = ports.split(',').map(|port| port.parse().ok()).collect();
            (target, Ports::new(ports?).ok()?)
        }
        None => (text, Ports::default()),
    };
    let target = match target.parse::<Ipv4Network>() {
        Ok(range) => range.to_string(),
        Err(_) => target.parse::<HostPattern>().ok()?.to_string(),
    };
    Some((target, ports.as_slice().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(allow: &[&str]) -> Option<Reach> {
        let allow: Vec<String> = allow.iter().map(|text| (*text).to_owned()).collect();
        match wanted(&allow, &[])? {
            Wanted::Allowlist(reach) => Some(reach),
            Wanted::Public => None,
        }
    }

    #[test]
    fn texts_mean_the_same_in_any_order_and_spelling() {
        let plain = reach(&["pypi.org", "10.0.0.0/8:22"]).unwrap();
        assert_eq!(reach(&["10.0.0.0/8:22", "PyPI.org:443,80"]).unwrap(), plain);
        assert_ne!(reach(&["pypi.org:443", "10.0.0.0/8:22"]).unwrap(), plain);
        assert_ne!(reach(&["*.pypi.org", "10.0.0.0/8:22"]).unwrap(), plain);
        assert_eq!(reach(&["preset:nothing"]), None);
        assert_eq!(reach(&["a b"]), None);
    }
}
