//! Which settings hold: flags, then environment variables, then the file, then what is usual.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use serde::Serialize;

use crate::args::{Arguments, RunArguments};
use crate::egress_uplink::EgressUplink;
use crate::local_access;
use crate::settings_file::{self, Line};
use crate::sharing;
use crate::sign_in;
use crate::tls::CertificateText;
use crate::traces;

/// Read when it is there and no other is named.
const FILE: &str = "/etc/dayfly/dayflyd.toml";

/// The settings, and where each comes from.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) arguments: RunArguments,
    pub(crate) report: SettingsReport,
}

/// What `dayflyd config check` says.
#[derive(Debug, Serialize)]
pub(crate) struct SettingsReport {
    /// The file that was read, if there is one.
    pub(crate) file: Option<PathBuf>,
    pub(crate) settings: Vec<Setting>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Setting {
    pub(crate) key: String,
    /// More than one for a list; none when it is left to the daemon.
    pub(crate) values: Vec<String>,
    pub(crate) from: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    Flag,
    Environment,
    File,
    Default,
}

impl Source {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        }
    }
}

/// The settings that hold for these words of a command line, the first of which is the program.
///
/// # Errors
/// When the file that was named is not there, or anything in it is not understood.
pub(crate) fn resolve(given: &[OsString]) -> Result<Settings> {
    let matches = Arguments::command().try_get_matches_from(given)?;
    let Some((file, text)) = read(matches.get_one::<PathBuf>("config"))? else {
        return settings(&matches, None, &BTreeSet::new());
    };
    let named = || format!("the settings in {}", file.display());
    let lines = settings_file::read(&text, &Arguments::command()).with_context(named)?;
    let is_open = |line: &Line| {
        let source = matches.value_source(&line.key);
        source.is_none_or(|source| source == ValueSource::DefaultValue)
    };
    let (mut words, mut from_file) = (given.to_vec(), BTreeSet::new());
    for line in lines.into_iter().filter(is_open) {
        words.extend(line.words);
        from_file.insert(line.key);
    }
    let whole = Arguments::command().try_get_matches_from(words);
    let whole = whole
        .map_err(|error| anyhow!(first_line(&error)))
        .with_context(named)?;
    settings(&whole, Some(file), &from_file)
}

/// The file with the settings and what it says.
fn read(named: Option<&PathBuf>) -> Result<Option<(PathBuf, String)>> {
    let path = named.map_or_else(|| Path::new(FILE), PathBuf::as_path);
    if named.is_none() && !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the settings file {}", path.display()))?;
    Ok(Some((path.to_owned(), text)))
}

/// What is wrong, without the words about usage.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn settings(
    matches: &ArgMatches,
    file: Option<PathBuf>,
    from_file: &BTreeSet<String>,
) -> Result<Settings> {
    let arguments = Arguments::from_arg_matches(matches)?.run;
    if let EgressUplink::Namespace(path) = &arguments.egress_uplink {
        let text = || format!("egress_uplink: there is no {}", path.display());
        ensure!(path.exists(), text());
    }
    check_proxy(&arguments)?;
    if let Some(group) = &arguments.local_group {
        local_access::group_id(group).context("local_group")?;
    }
    let keys = settings_file::keys(&Arguments::command());
    let settings = keys.into_iter().map(|key| Setting {
        values: raw_values(matches, &key),
        from: source_of(matches, &key, from_file),
        key,
    });
    let report = SettingsReport {
        file,
        settings: settings.collect(),
    };
    Ok(Settings { arguments, report })
}

/// Whoever could reach the proxy as an internal host could ask it for anything.
fn check_proxy(arguments: &RunArguments) -> Result<()> {
    let Some(proxy) = arguments.egress_proxy else {
        return Ok(());
    };
    let mut networks = arguments.internal_network.as_slice().iter();
    let holds = networks.find(|network| network.contains(*proxy.address().ip()));
    if let Some(network) = holds {
        let name = network.name();
        bail!("internal_network: `{name}` has egress_proxy in it; write ranges beside it");
    }
    Ok(())
}

/// What a start would refuse beside what is not understood. Gives the certificate that it has read,
/// and so is for whoever may.
///
/// # Errors
/// What is wrong, and what to write instead.
pub(crate) fn check(arguments: &RunArguments) -> Result<Option<CertificateText>> {
    let is_private = arguments.listen.ip().to_canonical().is_loopback();
    ensure!(
        is_private || arguments.plain_http,
        "listen: {} is an address that other hosts can reach, and keys would cross the network \
         in clear; listen on 127.0.0.1 and serve others with tls_listen, or say plain_http if a \
         proxy on another host speaks TLS",
        arguments.listen
    );
    sharing::check(arguments.sharing)?;
    sign_in::check(arguments.sign_in.as_ref())?;
    let tls = [
        ("tls_listen", arguments.tls_listen.is_some()),
        ("tls_certificate", arguments.tls_certificate.is_some()),
        ("tls_key", arguments.tls_key.is_some()),
    ];
    if tls.iter().any(|(_, is_there)| *is_there) {
        for (name, is_there) in tls {
            ensure!(
                is_there,
                "{name} is missing: TLS needs tls_listen, tls_certificate and tls_key"
            );
        }
    }
    traces::from_environment()?;
    CertificateText::of(arguments)
}

fn raw_values(matches: &ArgMatches, key: &str) -> Vec<String> {
    let values = matches.get_raw(key).into_iter().flatten();
    values
        .map(|value| value.to_string_lossy().into_owned())
        .collect()
}

fn source_of(matches: &ArgMatches, key: &str, from_file: &BTreeSet<String>) -> Source {
    match matches.value_source(key) {
        _ if from_file.contains(key) => Source::File,
        Some(ValueSource::CommandLine) => Source::Flag,
        Some(ValueSource::EnvVariable) => Source::Environment,
        _ => Source::Default,
    }
}

pub(crate) fn render(report: &SettingsReport) -> String {
    let mut text = match &report.file {
        Some(file) => format!("settings file  {}\n", file.display()),
        None => "settings file  none\n".to_owned(),
    };
    let width = report
        .settings
        .iter()
        .map(|one| one.key.len())
        .max()
        .unwrap_or(0);
    for Setting { key, values, from } in &report.settings {
        let values = if values.is_empty() {
            "-".to_owned()
        } else {
            values.join(",")
        };
        text.push_str(&format!("{key:width$}  {values}  ({})\n", from.as_str()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(words: &[&str]) -> Vec<OsString> {
        let words = ["dayflyd"].iter().chain(words);
        words.map(OsString::from).collect()
    }

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dayflyd.toml");
        std::fs::write(&path, text).unwrap();
        (directory, path.display().to_string())
    }

    fn source(settings: &Settings, key: &str) -> Source {
        let found = settings.report.settings.iter().find(|one| one.key == key);
        found.unwrap().from
    }

    #[test]
    fn a_flag_comes_before_the_file_and_the_file_before_what_is_usual() {
        let (_kept, path) = file("parked_slots = 5\nparked_engines = 7\ntemplates = ['a', 'b']\n");
        let words = ["--config", &path, "--parked-engines", "1"];
        let settings = resolve(&given(&words)).unwrap();
        assert_eq!(settings.arguments.parked_slots, 5);
        assert_eq!(settings.arguments.parked_engines, 1);
        assert_eq!(settings.arguments.templates, ["a", "b"]);
        assert_eq!(source(&settings, "parked_slots"), Source::File);
        assert_eq!(source(&settings, "parked_engines"), Source::Flag);
        assert_eq!(source(&settings, "listen"), Source::Default);
    }

    #[test]
    fn a_wrong_value_and_a_missing_file_are_told_with_the_file() {
        let (_kept, path) = file("listen = 'nowhere'\n");
        let error = format!("{:#}", resolve(&given(&["--config", &path])).unwrap_err());
        assert!(
            error.contains(&path) && error.contains("nowhere"),
            "{error}"
        );
        let missing = given(&["--config", "/nonexistent/dayflyd.toml"]);
        let error = format!("{:#}", resolve(&missing).unwrap_err());
        assert!(error.contains("/nonexistent/dayflyd.toml"), "{error}");
    }

    #[test]
    fn an_address_of_other_hosts_needs_a_word() {
        for address in ["0.0.0.0:7070", "[::]:7070", "192.0.2.1:7070"] {
            let error = checked(&["--listen", address]).unwrap_err();
            let error = format!("{error:#}");
            assert!(
                error.contains("tls_listen") && error.contains("plain_http"),
                "{error}"
            );
            assert!(checked(&["--listen", address, "--plain-http"]).is_ok());
        }
        for address in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(checked(&["--listen", address]).is_ok(), "{address}");
        }
    }

    #[test]
    fn disks_are_shared_only_among_shared_sandboxes() {
        assert!(checked(&["--memory-share", "8", "--disk-share", "16"]).is_ok());
        let error = format!("{:#}", checked(&["--disk-share", "16"]).unwrap_err());
        assert!(error.contains("memory_share"), "{error}");
        for wrong in ["0", "65", "1.5"] {
            assert!(resolve(&given(&["--memory-share", wrong])).is_err());
        }
    }

    fn checked(words: &[&str]) -> Result<Option<CertificateText>> {
        check(&resolve(&given(words))?.arguments)
    }

    #[test]
    fn tls_is_named_with_all_that_it_needs() {
        let words = ["--tls-listen", "127.0.0.1:1"];
        let error = format!("{:#}", checked(&words).unwrap_err());
        assert!(error.contains("tls_certificate is missing"), "{error}");
        assert!(checked(&["--tls-key", "key"]).is_err());
        let (_kept, path) = file("tls_certificate = '/nowhere/a'\ntls_key = 'b'\n");
        // A flag goes with the rest of the file.
        let words = [&words[..], &["--config", &path]].concat();
        let error = format!("{:#}", checked(&words).unwrap_err());
        assert!(
            error.contains("tls_certificate") && error.contains("/nowhere/a"),
            "{error}"
        );
    }

    #[test]
    fn a_group_that_is_not_there_is_told_with_what_to_do() {
        let error = resolve(&given(&["--local-group", "no such group"])).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.contains("local_group") && error.contains("groupadd"),
            "{error}"
        );
        assert!(resolve(&given(&["--local-group", "root"])).is_ok());
    }

    #[test]
    fn an_internal_network_is_a_table_of_the_file() {
        let table = "[[internal_network]]\nname = 'mirror'\nprojects = ['team-a']\n\
                     ranges = ['10.20.0.0/16']\nhosts = ['mirror.corp.example']\nports = [443]\n";
        let (_kept, path) = file(table);
        let found = resolve(&given(&["--config", &path])).unwrap();
        assert_eq!(source(&found, "internal_network"), Source::File);
        let networks = found.arguments.internal_network.as_slice();
        assert_eq!(networks[0].name(), "mirror");
        for (good, bad) in [
            ("10.20.0.0/16", "169.254.169.254"),
            ("10.20.0.0/16", "0.0.0.0/0"),
            ("team-a", "Team A"),
            ("hosts", "host"),
            ("443", "0"),
        ] {
            let (_kept, path) = file(&table.replace(good, bad));
            let error = resolve(&given(&["--config", &path])).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(&path), "{bad}: {error}");
        }
        let (_kept, path) = file(&format!("egress_proxy = 'http://10.20.0.9:3128'\n{table}"));
        let error = resolve(&given(&["--config", &path])).unwrap_err();
        assert!(format!("{error:#}").contains("egress_proxy"), "{error:#}");
        let here = table.replace("10.20.0.0/16", "10.20.0.7");
        let (_kept, path) = file(&here);
        let found = resolve(&given(&["--config", &path])).unwrap();
        assert!(crate::internal_network::check(&found.arguments.internal_network).is_ok());
    }

    #[test]
    fn a_registry_is_a_table_of_the_file_and_a_password_in_it_is_not_repeated() {
        let table = "[[registry]]\nhost = 'registry.example:5000'\nuser = 'puller'\n\
                     password_file = '/nowhere/secret-name'\n[[registry]]\nhost = 'docker.io'\n";
        let (_kept, path) = file(table);
        let found = resolve(&given(&["--config", &path])).unwrap();
        assert_eq!(source(&found, "registry"), Source::File);
        // A start does not look at the files; who checks the settings does.
        assert!(check(&found.arguments).is_ok());
        let error = crate::registries::check(&found.arguments.registry).unwrap_err();
        assert!(format!("{error:#}").contains("/nowhere"), "{error:#}");
        for (good, bad, why) in [
            ("password_file", "password", "unknown field `password`"),
            ("/nowhere/secret-name", "secret-word", "absolute"),
            ("'docker.io'", "'https://secret@docker.io'", "host"),
            ("'docker.io'", "'registry.example:5000'", "twice"),
            ("[[registry]]\nhost = 'docker.io'", "registry = 1", ""),
        ] {
            let (_kept, path) = file(&table.replace(good, bad));
            let error = resolve(&given(&["--config", &path])).unwrap_err();
            let error = format!("{error:#}");
            assert!(
                error.contains(&path) && error.contains(why),
                "{bad}: {error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
        let flag = r#"--registry=[{"host":"a.example","password":"secret"}]"#;
        let error = format!("{:#}", resolve(&given(&[flag])).unwrap_err());
        assert!(
            error.contains("`password`") && !error.contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn what_is_handed_over_arrives_as_it_was() {
        let words = [
            "--egress-uplink",
            "netns:/proc/self/ns/net",
            "--preview-domain",
            "https://a.b:1",
        ];
        let sent = resolve(&given(&words)).unwrap().arguments;
        let text = serde_json::to_string(&sent).unwrap();
        assert_eq!(serde_json::from_str::<RunArguments>(&text).unwrap(), sent);
    }
}
