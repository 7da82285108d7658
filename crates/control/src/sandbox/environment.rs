//! The environment variables of a sandbox: what every command and every new context of it has.
//!
//! Control keeps them, in a column of their own, because a wake or a rollback replaces them. A guest
//! gets them with each command, so that nothing of them is in a template or needs a newer agent.

use std::collections::BTreeMap;
use std::fmt;

use dayfly_types::{ProjectId, SandboxId, limits};
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::input::Invalid;
use crate::input::invalid::without_nul;
use crate::sandbox::read::{FindError, row_alive};

const FIELD: &str = "env";

/// Names with their values, checked. Values are often secrets, so nothing prints them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(BTreeMap<String, String>);

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    /// Those of a request.
    ///
    /// # Errors
    /// [`Invalid`], which has no value in it.
    pub fn parse(given: BTreeMap<String, String>) -> Result<Self, Invalid> {
        check(&given)?;
        if bytes(&given) > limits::ENVIRONMENT_BYTES_MAX {
            return Err(Invalid::TooLarge {
                what: FIELD,
                limit: limits::ENVIRONMENT_BYTES_MAX,
            });
        }
        Ok(Self(given))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// What a command has: these, and over them its own.
    pub(crate) fn under(self, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = self.0;
        all.extend(own.clone());
        all
    }
}

/// Refuses what no process can be given.
pub(crate) fn check(variables: &BTreeMap<String, String>) -> Result<(), Invalid> {
    for (name, value) in variables {
        if name.is_empty() || name.contains('=') {
            let rule = "names must not be empty or hold `=`";
            return Err(Invalid::field(FIELD, rule));
        }
        without_nul(FIELD, name)?;
        without_nul(FIELD, value)?;
    }
    Ok(())
}

/// How long they are for a process: each with its `=` and its end.
pub(crate) fn bytes(variables: &BTreeMap<String, String>) -> usize {
    let each = variables.iter();
    each.map(|(name, value)| name.len() + value.len() + 2).sum()
}

/// Those of a sandbox that the project has, as they are now. Whether it can take a call is for the
/// node to say.
///
/// # Errors
/// [`FindError`].
pub(crate) async fn of(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Result<Environment, FindError> {
    let known = control.environments.get(id);
    // Only of one that the node has, and has for this project.
    if let Some(known) = known.filter(|_| control.view.is_of(id, project)) {
        return Ok(known);
    }
    let changes = control.environments.changes();
    let found = control.store.environment(project, id).await;
    match found {
        Ok(Some(environment)) => {
            control.environments.keep(id, &environment, changes);
            Ok(environment)
        }
        // It says what became of one that is gone.
        Ok(None) => row_alive(control, project, id)
            .await
            .map(|row| row.environment),
        Err(source) => Err(FindError::Store {
            id: id.clone(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_command_has_its_own_over_those_of_its_sandbox() {
        let sandbox = Environment::parse(variables(&[("A", "1"), ("B", "1")])).unwrap();
        let all = sandbox.under(&variables(&[("B", "2"), ("C", "2")]));
        assert_eq!(all, variables(&[("A", "1"), ("B", "2"), ("C", "2")]));
    }

    #[test]
    fn what_is_refused_or_printed_shows_no_value() {
        let secret = "s3cret";
        for name in ["", "A=B", "A\0B"] {
            let refused = Environment::parse(variables(&[(name, secret)])).unwrap_err();
            assert!(!refused.to_string().contains(secret));
        }
        let long = secret.repeat(limits::ENVIRONMENT_BYTES_MAX / secret.len());
        let refused = Environment::parse(variables(&[("LONG", &long)])).unwrap_err();
        assert!(matches!(refused, Invalid::TooLarge { .. }));
        assert!(!refused.to_string().contains(secret));
        let fits = Environment::parse(variables(&[("A", secret)])).unwrap();
        assert_eq!(format!("{fits:?}"), r#"{"A"}"#);
    }
}
