//! Whose things a request is about: those of its key's project or, when an operator says so, those
//! of another project or of all.
//!
//! This is the one place that lets a request leave its own project.

use dayfly_types::ProjectId;

use crate::control::Control;
use crate::http::access::Denied;
use crate::http::auth::{Caller, denied};
use crate::http::error::ApiError;
use crate::http::parameter::{LooseFlag, ProjectName, parameters};
use crate::store::ProjectRow;
use crate::tenancy::projects;
use crate::tenancy::scope::Scope;

parameters! {
    /// Whose things are wanted.
    Query WhoseParameter {
        /// Of this project instead of the key's own. For operators.
        project: Option<ProjectName>,
        /// Of all projects; each item says whose it is. For operators. `true`, `1`, `false` or `0`.
        /// Default false.
        all_projects: LooseFlag,
    }

    /// Whose thing is meant.
    Query OtherProjectParameter {
        /// Of this project instead of the key's own. For operators.
        project: Option<ProjectName>,
    }
}

/// Whose things a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    One(ProjectId),
    Everybody,
}

impl Whose {
    /// What an item of a list says of the project that it is of.
    pub(crate) fn named(&self, project: &str) -> Option<String> {
        match self {
            Self::One(_) => None,
            Self::Everybody => Some(project.to_owned()),
        }
    }
}

impl WhoseParameter {
    /// Whose things the caller may have.
    ///
    /// # Errors
    /// `forbidden` unless an operator asks for what is not its own project's, `not_found` when there
    /// is no such project.
    pub(crate) async fn of(self, control: &Control, caller: &Caller) -> Result<Whose, ApiError> {
        match (self.project, self.all_projects) {
            (Some(_), true) => Err(ApiError::invalid(
                "`project` and `all_projects` exclude each other",
            )),
            (None, true) => {
                caller.notebook.adds_to_detail("all_projects", "true");
                ensure_operator(caller)?;
                Ok(Whose::Everybody)
            }
            (project, false) => {
                let one = OtherProjectParameter { project };
                one.of(control, caller).await.map(Whose::One)
            }
        }
    }
}

impl OtherProjectParameter {
    /// The project that is meant: the caller's own when none is named.
    ///
    /// # Errors
    /// As [`WhoseParameter::of`].
    pub(crate) async fn of(
        self,
        control: &Control,
        caller: &Caller,
    ) -> Result<ProjectId, ApiError> {
        let named = self.named(control, caller).await?;
        Ok(named.map_or_else(|| caller.project.clone(), |row| row.id))
    }

    /// The project that is named, if one is.
    ///
    /// # Errors
    /// As [`WhoseParameter::of`].
    pub(crate) async fn named(
        self,
        control: &Control,
        caller: &Caller,
    ) -> Result<Option<ProjectRow>, ApiError> {
        let Some(name) = self.project else {
            return Ok(None);
        };
        if ProjectId::parse(&name).is_ok() {
            caller.notebook.adds_to_detail("project", &name);
        }
        ensure_operator(caller)?;
        Ok(Some(projects::find_ever(control, &name).await?))
    }
}

fn ensure_operator(caller: &Caller) -> Result<(), ApiError> {
    if caller.reach.scopes.has(Scope::Operator) {
        return Ok(());
    }
    Err(denied(Denied::Scope(Scope::Operator)))
}
