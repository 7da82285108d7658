//! People who sign in: the word of an OpenID provider, exchanged for a key that soon ends.
//!
//! A key, because everything else here goes by one: what may be done with it, when it ends, what ends
//! with it, and whose it was in the audit record.

use std::collections::BTreeSet;
use std::sync::Arc;

use dayfly_api::NewToken;
use dayfly_oidc::{InvalidAuthority, Person, Provider, TokenRefusal};
use dayfly_types::ProjectId;
use dayfly_types::limits::{
    PERSON_KEYS_MAX, SIGN_INS_AT_ONCE_MAX, TOKEN_LABEL_CHARACTERS_MAX, TOKENS_MAX,
};
use tokio::sync::Semaphore;

use crate::audit::Unrecorded;
use crate::control::Control;
use crate::store::{KeyRow, PersonOfKey, ProjectState, StoreError};
use crate::tenancy::key::PresentedKey;
use crate::tenancy::projects::{self, ProjectError};
use crate::tenancy::scope::{Reach, Scope, Scopes};
use crate::tenancy::sign_in_settings::{Grant, Role, SignInConfig, SignInSettings};
use crate::tenancy::tokens::{self, Extent, TokenError};
use crate::time::now_ms;

/// How people sign in here.
#[derive(Debug)]
pub struct SignIn {
    pub(crate) provider: Provider,
    settings: SignInSettings,
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
    #[error("the ID token is not taken")]
    Verify(#[from] TokenRefusal),
    #[error("the settings of this server give {name} no role in any project")]
    NoRole { name: String },
    #[error("the settings of this server give {name} no role in project {project}")]
    NoRoleThere { name: String, project: String },
    #[error("say which project; this person has roles in: {}", projects.join(", "))]
    WhichProject { projects: Vec<String> },
    #[error("project {project} cannot be used now")]
    Suspended { project: ProjectId },
    #[error("a project has at most {TOKENS_MAX} keys")]
    Full,
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("cannot read or write keys")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
}

/// A key, and for whom.
#[derive(Debug)]
pub(crate) struct SignedIn {
    pub(crate) made: NewToken,
    pub(crate) project: ProjectId,
    pub(crate) person: Person,
    pub(crate) roles: BTreeSet<&'static str>,
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
}

/// Gives somebody a key of a project, by the word of the provider.
///
/// # Errors
/// [`SignInError`].
pub(crate) async fn sign_in(
    control: &Arc<Control>,
    token: &str,
    project: Option<&str>,
) -> Result<SignedIn, SignInError> {
    let sign_in = control.sign_in.as_ref().ok_or(SignInError::Off)?;
    let _place = sign_in
        .places
        .try_acquire()
        .map_err(|_| SignInError::TooMany)?;
    control.audit.ensure_writable()?;
    let person = sign_in.provider.verify(token).await?;
    let grants = sign_in.settings.grants_of(&person);
    let project = chosen(&person, &grants, project)?;
    let row = projects::find(control, project.as_str()).await?;
    if row.state != ProjectState::Active {
        return Err(SignInError::Suspended { project });
    }
    let theirs = grants.iter().filter(|grant| grant.project == project);
    let roles: Vec<_> = theirs.map(|grant| grant.role).collect();
    let made = insert(control, sign_in, &person, &project, roles_scopes(&roles)).await?;
    end_surplus(control, &project, &person).await?;
    Ok(SignedIn {
        made,
        project,
        person,
        roles: roles.iter().map(|role| role.as_str()).collect(),
    })
}

fn roles_scopes(roles: &[Role]) -> Scopes {
    let scopes = roles.iter().flat_map(|role| role.scopes().words());
    scopes.filter_map(Scope::parse).collect()
}

/// The project that is meant: the named one, or the only one there is.
fn chosen(
    person: &Person,
    grants: &[&Grant],
    named: Option<&str>,
) -> Result<ProjectId, SignInError> {
    let projects: BTreeSet<&ProjectId> = grants.iter().map(|grant| &grant.project).collect();
    let name = || person.name().to_owned();
    let mut all = projects.iter();
    match (named, all.next(), all.next()) {
        (_, None, _) => Err(SignInError::NoRole { name: name() }),
        (None, Some(only), None) => Ok((*only).clone()),
        (None, Some(_), Some(_)) => Err(SignInError::WhichProject {
            projects: projects.iter().map(ToString::to_string).collect(),
        }),
        (Some(named), Some(_), _) => {
            let found = projects
                .into_iter()
                .find(|project| project.as_str() == named);
            found.cloned().ok_or_else(|| SignInError::NoRoleThere {
                name: name(),
                project: named.to_owned(),
            })
        }
    }
}

async fn insert(
    control: &Control,
    sign_in: &SignIn,
    person: &Person,
    project: &ProjectId,
    scopes: Scopes,
) -> Result<NewToken, SignInError> {
    let now = now_ms();
    let count = control.store.count_api_keys(project, false, now).await?;
    if count >= TOKENS_MAX {
        return Err(SignInError::Full);
    }
    let key = PresentedKey::generate().map_err(TokenError::Randomness)?;
    let longest = now.saturating_add_unsigned(sign_in.settings.key_seconds.saturating_mul(1000));
    let word_ends = i64::try_from(person.expires_at.saturating_mul(1000)).unwrap_or(i64::MAX);
    let label = person.name().chars().filter(|one| !one.is_control());
    let row = KeyRow {
        hash: key.hash().to_hex(),
        project: project.clone(),
        prefix: key.prefix().to_owned(),
        reach: Reach::everywhere(scopes),
        label: label.take(TOKEN_LABEL_CHARACTERS_MAX).collect(),
        made_by: None,
        person: Some(PersonOfKey {
            subject: person.subject.clone(),
            sign_in: sign_in.digest.clone(),
        }),
        created_at_ms: now,
        expires_at_ms: Some(longest.min(word_ends)),
        revoked_at_ms: None,
    };
    control.store.insert_api_key(&row).await?;
    let mut token_info = tokens::present(&row);
    token_info.project = Some(project.to_string());
    Ok(NewToken {
        token_info,
        token: key.reveal().to_owned(),
    })
}

/// Ends the oldest keys of somebody who signs in again and again.
async fn end_surplus(
    control: &Arc<Control>,
    project: &ProjectId,
    person: &Person,
) -> Result<(), SignInError> {
    let surplus = control
        .store
        .surplus_keys(project, &person.subject, PERSON_KEYS_MAX, now_ms());
    for prefix in surplus.await? {
        tokens::end_whole(control, project, &prefix, Extent::Descendants).await?;
    }
    Ok(())
}
