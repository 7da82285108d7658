//! What a key may be used for.

use std::fmt;

use dayfly_types::SandboxId;
use http::Method;
use serde::{Deserialize, Serialize};

/// One kind of thing that a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// See what there is. Every key may.
    Read,
    /// Make, change and delete sandboxes, snapshots and volumes.
    Create,
    /// Everything inside a sandbox: commands, code, files, ports.
    Exec,
    /// Read the audit record of the project.
    Audit,
    /// Keys and defaults of the project, and its audit record.
    Admin,
    /// Projects, and what they may use.
    Operator,
}

impl Scope {
    const ALL: [Self; 6] = [
        Self::Read,
        Self::Create,
        Self::Exec,
        Self::Audit,
        Self::Admin,
        Self::Operator,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create => "create",
            Self::Exec => "exec",
            Self::Audit => "audit",
            Self::Admin => "admin",
            Self::Operator => "operator",
        }
    }

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// Some scopes. `admin` includes what a project's own people do, `operator` includes all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Of the operator's own key, and of all keys from before there were scopes.
    const EVERYTHING: &str = "all";

    #[must_use]
    pub fn operator() -> Self {
        Self::from_iter(Scope::ALL)
    }

    /// Reads what [`fmt::Display`] writes. An unknown word is an error: it may have been meant to
    /// narrow.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == Self::EVERYTHING {
            return Some(Self::operator());
        }
        text.split(' ').map(Scope::parse).collect()
    }

    #[must_use]
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & bit(scope) != 0
    }

    /// Whether a key with these may make one with `others`.
    #[must_use]
    pub const fn include(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The words, as they are told.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let has = move |scope: &Scope| self.has(*scope);
        Scope::ALL.into_iter().filter(has).map(Scope::as_str)
    }
}

const fn bit(scope: Scope) -> u8 {
    1 << scope as u8
}

impl FromIterator<Scope> for Scopes {
    /// With all that the given ones include.
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        let included = |scope: Scope| -> u8 {
            let below: &[Scope] = match scope {
                Scope::Read | Scope::Create | Scope::Exec | Scope::Audit => &[],
                Scope::Admin => &[Scope::Create, Scope::Exec, Scope::Audit],
                Scope::Operator => &[Scope::Create, Scope::Exec, Scope::Audit, Scope::Admin],
            };
            below.iter().fold(bit(scope), |all, one| all | bit(*one))
        };
        let all = scopes.into_iter().map(included);
        Self(all.fold(bit(Scope::Read), |all, one| all | one))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.words().collect();
        formatter.write_str(&words.join(" "))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Scopes({self})")
    }
}

/// What a key may be used for, and on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    pub scopes: Scopes,
    /// Only on this one.
    pub sandbox: Option<SandboxId>,
    /// Only for this file of it.
    pub file: Option<FileReach>,
}

impl Reach {
    /// On everything of the project.
    #[must_use]
    pub const fn everywhere(scopes: Scopes) -> Self {
        Self {
            scopes,
            sandbox: None,
            file: None,
        }
    }
}

/// A file, and what may be done with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileReach {
    pub path: String,
    pub operation: FileOperation,
}

/// What may be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOperation {
    Download,
    Upload,
}

impl FileOperation {
    /// The one method by which it is done.
    #[must_use]
    pub const fn method(self) -> Method {
        match self {
            Self::Download => Method::GET,
            Self::Upload => Method::PUT,
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_round_trip_with_what_they_include() {
        for scope in Scope::ALL {
            let scopes = Scopes::from_iter([scope]);
            assert_eq!(Scopes::parse(&scopes.to_string()), Some(scopes));
            assert!(scopes.has(scope) && scopes.has(Scope::Read));
            assert!(Scopes::operator().include(scopes));
        }
        let admin = Scopes::from_iter([Scope::Admin]);
        assert_eq!(admin.to_string(), "read create exec audit admin");
        assert!(!admin.include(Scopes::operator()));
        assert!(!Scopes::from_iter([Scope::Exec]).has(Scope::Create));
    }

    #[test]
    fn an_unknown_word_is_not_ignored() {
        assert_eq!(Scopes::parse("all"), Some(Scopes::operator()));
        for text in ["", "read everything", "READ", "read,exec"] {
            assert_eq!(Scopes::parse(text), None, "{text}");
        }
    }
}
