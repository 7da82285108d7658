//! Ids by their beginning, and by names.

use dayfly_api::Sandbox;
use dayfly_client::{Client, ClientError, SandboxFilter};
use dayfly_types::SandboxId;

/// What an id is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sandbox,
    Snapshot,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Snapshot => "snapshot",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Sandbox => "sandboxes",
            Self::Snapshot => "snapshots",
        }
    }

    /// What a whole id begins with.
    fn mark(self) -> &'static str {
        match self {
            Self::Sandbox => "sb",
            Self::Snapshot => "snap",
        }
    }
}

/// Why a text names nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrefixError {
    #[error("no {} is named, or has an id that starts with, {prefix:?}", kind.word())]
    Unknown { kind: Kind, prefix: String },
    #[error("{prefix:?} fits {} {}: {}", candidates.len(), kind.plural(), shorten(candidates))]
    Ambiguous {
        kind: Kind,
        prefix: String,
        candidates: Vec<String>,
    },
    #[error("cannot list {}", kind.plural())]
    List {
        kind: Kind,
        #[source]
        source: ClientError,
    },
}

impl PrefixError {
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Unknown {
                kind: Kind::Sandbox,
                ..
            } => "`dayfly ls` shows what exists",
            Self::Unknown {
                kind: Kind::Snapshot,
                ..
            } => "`dayfly snapshot ls` shows what exists",
            Self::Ambiguous { .. } => "give more characters of the id",
            // Why the list could not be had says more, where it is known.
            Self::List { .. } => "give the whole id to do without the list",
        }
        .to_owned()
    }
}

/// How many candidates an error names.
const CANDIDATES_SHOWN_MAX: usize = 8;

fn shorten(candidates: &[String]) -> String {
    let shown = candidates
        .iter()
        .take(CANDIDATES_SHOWN_MAX)
        .cloned()
        .collect::<Vec<_>>();
    let more = candidates.len() - shown.len();
    let tail = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    shown.join(", ") + &tail
}

/// The length of the random part of a whole id.
const RANDOM_CHARACTERS: usize = 26;

/// The id of the sandbox that `text` stands for. A whole one is taken as it is, without asking the
/// server.
pub(crate) async fn resolve(client: &Client, text: &str) -> Result<String, PrefixError> {
    resolve_in(client, &SandboxFilter::default(), text).await
}

/// As [`resolve`], among the sandboxes of a list.
pub(crate) async fn resolve_in(
    client: &Client,
    among: &SandboxFilter,
    text: &str,
) -> Result<String, PrefixError> {
    let kind = Kind::Sandbox;
    if is_whole(kind, text) {
        return Ok(text.to_owned());
    }
    let sandboxes = client
        .find_sandboxes(among)
        .await
        .map_err(|source| PrefixError::List { kind, source })?;
    let name_and_id = |one: Sandbox| (one.name, one.id);
    pick(kind, text, sandboxes.into_iter().map(name_and_id))
}

/// As [`resolve`], for snapshots.
pub(crate) async fn resolve_snapshot(client: &Client, text: &str) -> Result<String, PrefixError> {
    let kind = Kind::Snapshot;
    if is_whole(kind, text) {
        return Ok(text.to_owned());
    }
    let snapshots = client
        .list_snapshots(None)
        .await
        .map_err(|source| PrefixError::List { kind, source })?;
    // The list is newest first, and a name stands for the oldest that has it.
    let oldest_first = snapshots.into_iter().rev();
    pick(kind, text, oldest_first.map(|one| (one.name, one.id)))
}

fn is_whole(kind: Kind, text: &str) -> bool {
    // Every id has the same grammar.
    let Ok(id) = SandboxId::parse(text) else {
        return false;
    };
    let mut parts = id.as_str().splitn(3, '-');
    parts.next() == Some(kind.mark())
        && parts.next().is_some()
        && parts
            .next()
            .is_some_and(|random| random.len() == RANDOM_CHARACTERS)
}

/// Chooses among names and ids: by the name, by the whole id, or by the beginning of an id or of its
/// random part.
fn pick(
    kind: Kind,
    prefix: &str,
    things: impl Iterator<Item = (Option<String>, String)>,
) -> Result<String, PrefixError> {
    let unknown = || PrefixError::Unknown {
        kind,
        prefix: prefix.to_owned(),
    };
    if prefix.is_empty() {
        return Err(unknown());
    }
    let things: Vec<_> = things.collect();
    let is_named = |name: &Option<String>| name.as_deref() == Some(prefix);
    if let Some((_, id)) = things.iter().find(|(name, _)| is_named(name)) {
        return Ok(id.clone());
    }
    let ids = things.into_iter().map(|(_, id)| id);
    let mut candidates: Vec<String> = ids
        .filter(|id| {
            let random = id.rsplit('-').next().unwrap_or_default();
            id.starts_with(prefix) || random.starts_with(prefix)
        })
        .collect();
    candidates.sort();
    if let Some(exact) = candidates.iter().find(|id| *id == prefix) {
        return Ok(exact.clone());
    }
    match candidates.len() {
        0 => Err(unknown()),
        1 => Ok(candidates.remove(0)),
        _ => Err(PrefixError::Ambiguous {
            kind,
            prefix: prefix.to_owned(),
            candidates,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(prefix: &str) -> Result<String, PrefixError> {
        let things = [
            (None, "sb-local-abc"),
            (Some("xyzz"), "sb-local-abd"),
            (None, "sb-local-xyz"),
            (None, "sb-local-xyzz"),
        ];
        let owned = |(name, id): (Option<&str>, &str)| (name.map(str::to_owned), id.to_owned());
        pick(Kind::Sandbox, prefix, things.into_iter().map(owned))
    }

    #[test]
    fn a_unique_beginning_is_enough() {
        assert_eq!(chosen("sb-local-abc").unwrap(), "sb-local-abc");
        assert_eq!(chosen("abd").unwrap(), "sb-local-abd");
        assert_eq!(
            chosen("sb-local-xyz").unwrap(),
            "sb-local-xyz",
            "the whole id wins"
        );
    }

    #[test]
    fn a_name_wins() {
        assert_eq!(chosen("xyzz").unwrap(), "sb-local-abd");
        assert!(matches!(chosen("xyzzz"), Err(PrefixError::Unknown { .. })));
    }

    #[test]
    fn a_beginning_of_several_or_of_none_is_an_error_that_says_so() {
        let text = chosen("ab").unwrap_err().to_string();
        assert!(text.contains("sb-local-abc, sb-local-abd"), "{text}");
        assert!(matches!(chosen("q"), Err(PrefixError::Unknown { .. })));
        assert!(matches!(chosen(""), Err(PrefixError::Unknown { .. })));
    }

    #[test]
    fn a_whole_id_needs_no_list() {
        let random = "0123456789abcdefghjkmnpqrs";
        assert!(is_whole(Kind::Sandbox, &format!("sb-local-{random}")));
        assert!(is_whole(Kind::Snapshot, &format!("snap-local-{random}")));
        assert!(!is_whole(Kind::Snapshot, &format!("sb-local-{random}")));
        assert!(!is_whole(Kind::Sandbox, "sb-local-0123"));
        assert!(!is_whole(
            Kind::Sandbox,
            "sb-local-0123456789abcdefghjkmnpqr/"
        ));
    }
}
