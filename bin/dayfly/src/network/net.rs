//! `dayfly net`: what sandboxes reach.

use dayfly_api::{
    Network, NetworkMode, NetworkRule, NetworkSuggestion, NetworkWish, RuleParts, RuleWish,
};

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::network::args::{NetCommand, NetworkArgs};
use crate::network::log;
use crate::sandbox::prefixes;
use crate::table::Table;
use crate::{exit_status, text};

pub(crate) async fn net(session: &Session<'_>, command: &NetCommand) -> Result<u8, CommandError> {
    match command {
        NetCommand::Show { id } => show(session, id).await?,
        NetCommand::Set { id, network } => set(session, id, network).await?,
        NetCommand::Allow { id, names } => allow(session, id, names).await?,
        NetCommand::Deny { id } => {
            let wish = NetworkWish {
                mode: NetworkMode::Deny,
                rules: Vec::new(),
            };
            replace(session, &resolve(session, id).await?, &wish).await?;
        }
        NetCommand::Log { id, follow, after } => {
            let id = resolve(session, id).await?;
            return log::log(session, &id, *follow, *after).await;
        }
        NetCommand::Suggest { id, apply } => suggest(session, id, *apply).await?,
        NetCommand::Presets { name } => presets(session, name.as_deref()).await?,
        NetCommand::Default { network } => default(session, network).await?,
    }
    Ok(exit_status::OK)
}

async fn resolve(session: &Session<'_>, id: &str) -> Result<String, CommandError> {
    Ok(prefixes::resolve(&session.client, id).await?)
}

async fn show(session: &Session<'_>, id: &str) -> Result<(), CommandError> {
    let id = resolve(session, id).await?;
    let network = session.client.network(&id).await.map_err(|source| {
        CommandError::call(format!("cannot read the network of sandbox {id}"), source)
    })?;
    print(session, &network)
}

async fn set(session: &Session<'_>, id: &str, args: &NetworkArgs) -> Result<(), CommandError> {
    let Some(wish) = args.wish()? else {
        return Err(CommandError::Usage {
            what: "nothing says what the sandbox may reach".to_owned(),
            hint: "give --allow or --network; `dayfly net show` shows what holds now",
        });
    };
    replace(session, &resolve(session, id).await?, &wish).await
}

async fn replace(session: &Session<'_>, id: &str, wish: &NetworkWish) -> Result<(), CommandError> {
    let changed = session.client.set_network(id, wish).await;
    let network = changed.map_err(cannot_change(id))?;
    print(session, &network)?;
    warn_unless_enforced(session, &network);
    Ok(())
}

async fn allow(session: &Session<'_>, id: &str, names: &[String]) -> Result<(), CommandError> {
    let id = resolve(session, id).await?;
    let rules = names.iter().map(RuleWish::text).collect();
    let changed = session.client.allow_network(&id, rules).await;
    let network = changed.map_err(cannot_change(&id))?;
    print(session, &network)?;
    warn_unless_enforced(session, &network);
    Ok(())
}

fn cannot_change(id: &str) -> impl FnOnce(dayfly_client::ClientError) -> CommandError {
    let what = format!("cannot change the network of sandbox {id}");
    move |source| CommandError::call(what, source)
}

fn warn_unless_enforced(session: &Session<'_>, network: &Network) {
    if !network.enforced {
        session.printer.warning(
            "it is not in force now: the sandbox sleeps, or its host has not confirmed it yet",
        );
    }
}

fn print(session: &Session<'_>, network: &Network) -> Result<(), CommandError> {
    if session.printer.is_json() {
        return session.printer.json(network);
    }
    let mut table = Table::new(&["FIELD", "VALUE"]);
    let mut row = |field: &str, value: String| table.push(vec![field.to_owned(), value]);
    row("mode", network.mode.as_str().to_owned());
    row("epoch", network.epoch.to_string());
    let enforced = if network.enforced { "yes" } else { "no" };
    row("in force", enforced.to_owned());
    for rule in &network.rules {
        row(&format!("rule {}", rule.id), reach(rule));
    }
    session.printer.table(&table)
}

/// What a rule speaks of, as `--allow` takes it.
fn reach(rule: &NetworkRule) -> String {
    format!("{}:{}", target(rule), ports(rule))
}

fn target(rule: &NetworkRule) -> String {
    let target = rule.host.as_ref().or(rule.cidr.as_ref());
    target.cloned().unwrap_or_default()
}

fn ports(rule: &NetworkRule) -> String {
    let ports: Vec<String> = rule.ports.iter().map(u16::to_string).collect();
    ports.join(",")
}

async fn suggest(session: &Session<'_>, id: &str, apply: bool) -> Result<(), CommandError> {
    let id = resolve(session, id).await?;
    let drafted = session.client.suggest_network(&id).await;
    let suggestion = drafted.map_err(|source| {
        CommandError::call(format!("cannot read what sandbox {id} tried"), source)
    })?;
    if !apply {
        print_suggestion(session, &suggestion)?;
        warn_of_gaps(session, &suggestion);
        return Ok(());
    }
    if suggestion.rules.is_empty() {
        return Err(CommandError::Refused {
            what: "no connection was let through yet, so there is nothing to suggest".to_owned(),
            hint: "let it work with `dayfly net set --network observe` first",
        });
    }
    warn_of_gaps(session, &suggestion);
    let wish = NetworkWish {
        mode: suggestion.mode,
        rules: suggestion.rules.into_iter().map(as_wish).collect(),
    };
    replace(session, &id, &wish).await
}

fn as_wish(rule: NetworkRule) -> RuleWish {
    RuleWish::Rule(RuleParts {
        host: rule.host,
        cidr: rule.cidr,
        ports: Some(rule.ports),
        id: Some(rule.id),
    })
}

fn print_suggestion(
    session: &Session<'_>,
    suggestion: &NetworkSuggestion,
) -> Result<(), CommandError> {
    let printer = session.printer;
    if printer.is_json() {
        return printer.json(suggestion);
    }
    printer.table(&rules_table(&suggestion.rules))?;
    let records = suggestion.records;
    printer.note(&format!(
        "from {records} records; --apply makes it what the sandbox may reach"
    ));
    Ok(())
}

fn warn_of_gaps(session: &Session<'_>, suggestion: &NetworkSuggestion) {
    let printer = session.printer;
    for address in &suggestion.unnamed {
        let address = text::visible(address);
        printer.warning(&format!(
            "a connection to {address} had no name, so no rule covers it"
        ));
    }
    if suggestion.lost > 0 {
        let lost = suggestion.lost;
        printer.warning(&format!(
            "{lost} records are gone; what they show is missing"
        ));
    }
    if suggestion.truncated {
        printer
            .warning("there were more names than a policy has rules; the least used are missing");
    }
}

fn rules_table(rules: &[NetworkRule]) -> Table {
    let mut table = Table::new(&["TARGET", "PORTS"]);
    for rule in rules {
        table.push(vec![target(rule), ports(rule)]);
    }
    table
}

async fn presets(session: &Session<'_>, name: Option<&str>) -> Result<(), CommandError> {
    let listed = session.client.network_presets().await;
    let mut presets =
        listed.map_err(|source| CommandError::call("cannot list the presets", source))?;
    if let Some(name) = name {
        let name = name.strip_prefix("preset:").unwrap_or(name);
        presets.retain(|preset| preset.name == name);
        let Some(preset) = presets.first() else {
            return Err(CommandError::Usage {
                what: format!("there is no preset {name:?}"),
                hint: "`dayfly net presets` lists them",
            });
        };
        if session.printer.is_json() {
            return session.printer.json(preset);
        }
        return session.printer.table(&rules_table(&preset.rules));
    }
    if session.printer.is_json() {
        return session.printer.json(&presets);
    }
    let mut table = Table::new(&["NAME", "MODE", "HOSTS", "DESCRIPTION"]);
    for preset in &presets {
        table.push(vec![
            preset.name.clone(),
            preset.mode.as_str().to_owned(),
            preset.rules.len().to_string(),
            preset.description.clone(),
        ]);
    }
    session.printer.table(&table)
}

async fn default(session: &Session<'_>, args: &NetworkArgs) -> Result<(), CommandError> {
    let client = &session.client;
    let default = match args.wish()? {
        Some(wish) => client.set_network_default(&wish).await.map_err(|source| {
            CommandError::call("cannot change what new sandboxes may reach", source)
        })?,
        None => client.network_default().await.map_err(|source| {
            CommandError::call("cannot read what new sandboxes may reach", source)
        })?,
    };
    if session.printer.is_json() {
        return session.printer.json(&default);
    }
    let mut table = Table::new(&["FIELD", "VALUE"]);
    table.push(vec!["mode".to_owned(), default.mode.as_str().to_owned()]);
    for rule in &default.rules {
        table.push(vec![format!("rule {}", rule.id), reach(rule)]);
    }
    session.printer.table(&table)
}
