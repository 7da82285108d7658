//! Which package archives an image is built from: those of the host, where they carry the suite.
//!
//! An operator's host already knows a mirror that it can reach and whose keys it trusts. Its
//! entries are copied into the build with their suites narrowed; no archive is named here. A host
//! of another release has none that fit, and the builder's own default is used then.

use std::path::Path;

/// Suites of one release that belong in an image; backports are asked for by name.
fn belongs(suite: &str, release: &str) -> bool {
    match suite.strip_prefix(release) {
        Some("") => true,
        Some(rest) => matches!(rest, "-updates" | "-security" | "/updates"),
        None => false,
    }
}

/// The archives for one release, in the two formats that hosts use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sources {
    entries: Vec<Entry>,
}

/// One archive entry of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// `Key: value` lines; continuation lines stay with their key.
    Stanza(Vec<Field>),
    /// `deb [options] uri suite component...`
    Line {
        options: String,
        uri: String,
        suite: String,
        components: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    key: String,
    value: String,
}

impl Sources {
    /// Reads the host's entries for `release` from a directory such as `/etc/apt`.
    pub(crate) fn of_host(directory: &Path, release: &str) -> Self {
        let mut paths = vec![directory.join("sources.list")];
        if let Ok(parts) = std::fs::read_dir(directory.join("sources.list.d")) {
            paths.extend(parts.flatten().map(|entry| entry.path()));
        }
        paths.sort();
        let mut entries = Vec::new();
        for path in paths {
            let extension = path.extension().and_then(|extension| extension.to_str());
            // A file that cannot be read is not this program's to complain about.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            match extension {
                Some("sources") => entries.extend(stanzas(&text)),
                Some("list") => entries.extend(text.lines().filter_map(line)),
                _ => {}
            }
        }
        entries.retain_mut(|entry| entry.is_the_distributions() && entry.narrow(release));
        Self { entries }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The same archives and, from the main one, another suite beside them.
    pub(crate) fn with_suite_beside(&self, release: &str, suite: &str) -> Self {
        let mut entries = self.entries.clone();
        let main = self
            .entries
            .iter()
            .find(|entry| entry.suites().any(|found| found == release));
        if let Some(mut entry) = main.cloned() {
            entry.set_suite(suite);
            entries.push(entry);
        }
        Self { entries }
    }

    /// The text of a `.sources` file; empty when the host uses the other format alone.
    pub(crate) fn stanza_text(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let Entry::Stanza(fields) = entry else {
                continue;
            };
            for Field { key, value } in fields {
                text.push_str(&format!("{key}:{value}\n"));
            }
            text.push('\n');
        }
        text
    }

    /// The text of a `.list` file; empty when the host uses the other format alone.
    pub(crate) fn line_text(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let Entry::Line {
                options,
                uri,
                suite,
                components,
            } = entry
            else {
                continue;
            };
            let separator = if options.is_empty() { "" } else { " " };
            text.push_str(&format!(
                "deb{separator}{options} {uri} {suite} {components}\n"
            ));
        }
        text
    }
}

impl Entry {
    fn field(&self, wanted: &str) -> Option<&str> {
        let Self::Stanza(fields) = self else {
            return None;
        };
        let found = fields
            .iter()
            .find(|field| field.key.eq_ignore_ascii_case(wanted));
        found.map(|field| field.value.trim())
    }

    fn suites(&self) -> impl Iterator<Item = &str> {
        let text = match self {
            Self::Stanza(_) => self.field("Suites").unwrap_or(""),
            Self::Line { suite, .. } => suite,
        };
        text.split_whitespace()
    }

    /// Third parties name their suites after the release too, but bring a key of their own and
    /// have no archive section called `main` beside it.
    fn is_the_distributions(&self) -> bool {
        let (components, key) = match self {
            Self::Stanza(_) => (
                self.field("Components").unwrap_or(""),
                self.field("Signed-By").unwrap_or(""),
            ),
            Self::Line {
                options,
                components,
                ..
            } => (
                components.as_str(),
                option_of(options, "signed-by").unwrap_or(""),
            ),
        };
        let enabled = self.field("Enabled").is_none_or(|value| value != "no");
        let binary = match self {
            Self::Stanza(_) => self
                .field("Types")
                .is_some_and(|types| types.split_whitespace().any(|t| t == "deb")),
            Self::Line { .. } => true,
        };
        let known_key = key.is_empty() || key.contains("debian-archive");
        enabled && binary && known_key && components.split_whitespace().any(|name| name == "main")
    }

    /// Keeps the release's own suites. Says whether any is left.
    fn narrow(&mut self, release: &str) -> bool {
        let kept: Vec<&str> = self
            .suites()
            .filter(|suite| belongs(suite, release))
            .collect();
        if kept.is_empty() {
            return false;
        }
        let kept = kept.join(" ");
        self.set_suite(&kept);
        true
    }

    fn set_suite(&mut self, suites: &str) {
        match self {
            Self::Stanza(fields) => {
                for field in fields.iter_mut() {
                    match field.key.to_ascii_lowercase().as_str() {
                        "suites" => field.value = format!(" {suites}"),
                        "types" => field.value = " deb".to_owned(),
                        _ => {}
                    }
                }
            }
            Self::Line { suite, .. } => suites.clone_into(suite),
        }
    }
}

fn stanzas(text: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut fields: Vec<Field> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            if !fields.is_empty() {
                found.push(Entry::Stanza(std::mem::take(&mut fields)));
            }
        } else if line.starts_with([' ', '\t']) {
            if let Some(last) = fields.last_mut() {
                last.value.push('\n');
                last.value.push_str(line);
            }
        } else if let Some((key, value)) = line.split_once(':') {
            fields.push(Field {
                key: key.to_owned(),
                value: value.to_owned(),
            });
        }
    }
    found
}

fn line(text: &str) -> Option<Entry> {
    let text = text.split('#').next()?.trim();
    let rest = text.strip_prefix("deb")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (options, rest) = inner.split_once(']')?;
            (format!("[{options}]"), rest)
        }
        None => (String::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?.to_owned(), words.next()?.to_owned());
    let components = words.collect::<Vec<&str>>().join(" ");
    Some(Entry::Line {
        options,
        uri,
        suite,
        components,
    })
}

fn option_of<'a>(options: &'a str, wanted: &str) -> Option<&'a str> {
    let inner = options.trim_start_matches('[').trim_end_matches(']');
    let pairs = inner
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find(|(key, _)| *key == wanted)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: &str = "bookworm";

    fn sources_of(files: &[(&str, &str)]) -> Sources {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sources.list.d")).unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        Sources::of_host(directory.path(), RELEASE)
    }

    const STANZAS: &str = "\
Types: deb deb-src
# a remark
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
";

    #[test]
    fn stanzas_are_narrowed_to_the_release() {
        let sources = sources_of(&[("sources.list.d/debian.sources", STANZAS)]);
        let text = sources.stanza_text();
        assert!(
            text.contains("Suites: bookworm bookworm-updates\n"),
            "{text}"
        );
        assert!(text.contains("Suites: bookworm-security\n"), "{text}");
        assert!(
            !text.contains("backports") && !text.contains("deb-src"),
            "{text}"
        );
        assert_eq!(sources.line_text(), "");
    }

    #[test]
    fn another_suite_is_derived_from_the_main_archive() {
        let sources = sources_of(&[("sources.list.d/debian.sources", STANZAS)]);
        let text = sources
            .with_suite_beside(RELEASE, "bookworm-backports")
            .stanza_text();
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(last.contains("URIs: http://mirror.test/debian\n"), "{text}");
        assert!(last.contains("Suites: bookworm-backports\n"), "{text}");
    }

    #[test]
    fn lines_are_understood() {
        let text = "\
# deb http://mirror.test/debian bookworm main
deb-src http://mirror.test/debian bookworm main
deb http://mirror.test/debian bookworm main contrib # remark
deb [arch=amd64 trusted=yes] http://mirror.test/security bookworm-security main
deb http://mirror.test/debian trixie main
";
        let sources = sources_of(&[("sources.list", text)]);
        assert_eq!(
            sources.line_text(),
            "deb http://mirror.test/debian bookworm main contrib\n\
             deb [arch=amd64 trusted=yes] http://mirror.test/security bookworm-security main\n"
        );
        let derived = sources
            .with_suite_beside(RELEASE, "bookworm-backports")
            .line_text();
        assert!(
            derived.ends_with("deb http://mirror.test/debian bookworm-backports main contrib\n")
        );
    }

    #[test]
    fn third_parties_and_disabled_entries_are_left_out() {
        let other = "\
Types: deb
URIs: http://other.test/
Suites: bookworm
Components: main
Signed-By: /etc/apt/keyrings/other.gpg

Types: deb
URIs: http://mirror.test/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://tools.test/
Suites: bookworm
Components: stable
";
        let list = "deb [signed-by=/etc/apt/keyrings/x.gpg] http://x.test/ bookworm main\n";
        let sources = sources_of(&[
            ("sources.list.d/other.sources", other),
            ("sources.list.d/x.list", list),
            (
                "sources.list.d/y.list.disabled",
                "deb http://y.test/ bookworm main\n",
            ),
        ]);
        assert!(sources.is_empty(), "{sources:?}");
    }

    #[test]
    fn host_of_another_release_has_none() {
        let text = STANZAS.replace("bookworm", "trixie");
        assert!(sources_of(&[("sources.list.d/debian.sources", &text)]).is_empty());
        assert!(sources_of(&[]).is_empty());
    }
}
