//! People who sign in: the word of an OpenID provider, exchanged for a key that soon ends.
//!
//! A key, because everything else here goes by one: what may be done with it, when it ends, what ends
//! with it, and whose it was in the audit record.

use std::collections::BTreeSet;
use std::sync::Arc;

use dayfly_api::NewToken;
use dayfly_oidc::{InvalidAuthority, Person, Provider, TokenRefusal};
use dayfly_types::ProjectId;
use dayfly_types::limits::{PERSON_KEYS_MAX, SIGN_INS_AT_ONCE_MAX, SIGN_INS_PER_MINUTE_MAX};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::audit::Unrecorded;
use crate::control::Control;
use crate::store::{PersonOfKey, ProjectState, StoreError};
use crate::tenancy::projects::{self, ProjectError};
use crate::tenancy::scope::Reach;
use crate::tenancy::sign_in_settings::{Grant, Role, SignInConfig, SignInSettings};
use crate::tenancy::tokens::{self, Extent, KeyOwner, TokenError};
use crate::time::now_ms;

const MINUTE_MS: i64 = 60_000;

/// How people sign in here.
#[derive(Debug)]
pub struct SignIn {
    pub(crate) provider: Provider,
    pub(crate) settings: SignInSettings,
    digest: String,
    /// Of those who do it now.
    places: Semaphore,
}

/// Why somebody does not get a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    #[error("nobody can sign in to this server: it has no `sign_in` in its settings")]
    Off,
    #[error("too many people sign in at this moment")]
    TooMany,
    #[error("the ID token took too long to arrive")]
    Slow,
    #[error("the ID token is not taken")]
    Verify(#[from] TokenRefusal),
    #[error("the ID token is not taken: it is older than a key may get here")]
    TooOld,
    #[error("the settings of this server give {name} no role in any project")]
    NoRole { name: String },
    #[error("the settings of this server give {name} no role in project {project}")]
    NoRoleThere { name: String, project: ProjectId },
    #[error("say which project; this person has roles in: {}", projects.join(", "))]
    WhichProject { projects: Vec<String> },
    #[error("project {project} cannot be used now")]
    Suspended { project: ProjectId },
    #[error("{name} has signed in {SIGN_INS_PER_MINUTE_MAX} times within a minute")]
    TooOften { name: String },
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("cannot read or write keys")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
}

/// Somebody who may have a key, of which project, and for what.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) person: Person,
    pub(crate) project: ProjectId,
    pub(crate) roles: Vec<Role>,
    expires_at_ms: i64,
}

impl SignIn {
    /// # Errors
    /// When the authority's certificates cannot be used.
    pub fn new(config: SignInConfig) -> Result<Self, InvalidAuthority> {
        Ok(Self {
            provider: Provider::new(config.provider())?,
            digest: config.settings.digest(),
            settings: config.settings,
            places: Semaphore::new(SIGN_INS_AT_ONCE_MAX),
        })
    }

    /// Of the settings under which people sign in.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Until when a person's key may last. From the provider's word on, so that an old token is not
    /// good for another key.
    fn end_of(&self, person: &Person) -> i64 {
        let longest = person.issued_at.saturating_add(self.settings.key_seconds);
        let seconds = longest.min(person.expires_at);
        i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX)
    }
}

/// A place among those who sign in, before anything is read of them: nobody knows yet who they are.
///
/// # Errors
/// [`SignInError::Off`], [`SignInError::TooMany`].
pub(crate) fn place(control: &Control) -> Result<SemaphorePermit<'_>, SignInError> {
    let sign_in = control.sign_in.as_ref().ok_or(SignInError::Off)?;
    let place = sign_in.places.try_acquire();
    place.map_err(|_| SignInError::TooMany)
}

/// Who it is, and what they may have.
///
/// # Errors
/// [`SignInError`].
pub(crate) async fn admit(
    control: &Control,
    token: &str,
    project: Option<&ProjectId>,
) -> Result<Admitted, SignInError> {
    let sign_in = control.sign_in.as_ref().ok_or(SignInError::Off)?;
    control.audit.ensure_writable()?;
    let person = sign_in.provider.verify(token).await?;
    let expires_at_ms = sign_in.end_of(&person);
    if expires_at_ms <= now_ms() {
        return Err(SignInError::TooOld);
    }
    let grants = sign_in.settings.grants_of(&person);
    let project = chosen(&person, &grants, project)?;
    let row = projects::find(control, project.as_str()).await?;
    if row.state != ProjectState::Active {
        return Err(SignInError::Suspended { project });
    }
    let since = now_ms() - MINUTE_MS;
    let lately = control
        .store
        .count_sign_ins(&project, &person.subject, since);
    if lately.await? >= SIGN_INS_PER_MINUTE_MAX {
        let name = person.name();
        return Err(SignInError::TooOften { name });
    }
    let theirs = grants.iter().filter(|grant| grant.project == project);
    Ok(Admitted {
        roles: theirs.map(|grant| grant.role).collect(),
        person,
        project,
        expires_at_ms,
    })
}

/// The project that is meant: the named one, or the only one there is.
fn chosen(
    person: &Person,
    grants: &[&Grant],
    named: Option<&ProjectId>,
) -> Result<ProjectId, SignInError> {
    let projects: BTreeSet<&ProjectId> = grants.iter().map(|grant| &grant.project).collect();
    let name = || person.name();
    let mut all = projects.iter();
    match (named, all.next(), all.next()) {
        (_, None, _) => Err(SignInError::NoRole { name: name() }),
        (None, Some(only), None) => Ok((*only).clone()),
        (None, Some(_), Some(_)) => Err(SignInError::WhichProject {
            projects: projects.iter().map(ToString::to_string).collect(),
        }),
        (Some(named), Some(_), _) if projects.contains(named) => Ok(named.clone()),
        (Some(named), Some(_), _) => Err(SignInError::NoRoleThere {
            name: name(),
            project: named.clone(),
        }),
    }
}

/// Makes the key.
///
/// # Errors
/// [`SignInError`].
pub(crate) async fn insert(
    control: &Control,
    admitted: &Admitted,
) -> Result<NewToken, SignInError> {
    let sign_in = control.sign_in.as_ref().ok_or(SignInError::Off)?;
    let person = &admitted.person;
    let owner = KeyOwner::Person(PersonOfKey {
        subject: person.subject.clone(),
        sign_in: sign_in.digest.clone(),
    });
    let scopes = admitted.roles.iter().flat_map(|role| role.scopes());
    let reach = Reach::everywhere(scopes.copied().collect());
    let (project, end) = (&admitted.project, Some(admitted.expires_at_ms));
    let mut made = tokens::add(control, project, owner, reach, person.name(), end).await?;
    made.token_info.project = Some(project.to_string());
    Ok(made)
}

/// Ends the oldest keys of somebody who signs in again and again.
///
/// # Errors
/// [`SignInError`].
pub(crate) async fn end_surplus(
    control: &Arc<Control>,
    admitted: &Admitted,
) -> Result<(), SignInError> {
    let (project, subject) = (&admitted.project, &admitted.person.subject);
    let surplus = control
        .store
        .surplus_keys(project, subject, PERSON_KEYS_MAX, now_ms());
    for prefix in surplus.await? {
        tokens::end_whole(control, project, &prefix, Extent::Descendants).await?;
    }
    Ok(())
}
