//! The keys of a project.

use std::sync::Arc;

use dayfly_api::{CreateToken, NewToken, Token, TokenList};
use dayfly_types::limits::{
    FILE_LINKS_MAX, TOKEN_LABEL_CHARACTERS_MAX, TOKEN_TTL_SECONDS_MAX, TOKENS_MAX,
};
use dayfly_types::{ProjectId, SandboxId};

use crate::audit::Unrecorded;
use crate::control::Control;
use crate::input::Invalid;
use crate::sandbox::name;
use crate::sandbox::read::{FindError, locate};
use crate::store::{
    ADMIN_PREFIX, KeyPlace, KeyRow, LOCAL_PREFIX, PersonOfKey, Revoked, StoreError,
};
use crate::tenancy::key::{PresentedKey, without_secret};
use crate::tenancy::scope::{FileReach, Reach, Scope, Scopes};
use crate::tenancy::whose::Whose;
use crate::time::{deadline_ms, now_ms, rfc3339};

const DAY_SECONDS: u64 = 24 * 3600;

/// Why something about keys was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("this key cannot give away the scope it does not have")]
    Wider,
    #[error("this key cannot end that one")]
    EndsWider,
    #[error("the project has no key {prefix}")]
    NotFound { prefix: String },
    #[error("this key has made no such link to a file of this sandbox")]
    NoLink,
    #[error("a project has at most {FILE_LINKS_MAX} links to files at once")]
    TooManyLinks,
    #[error("a project has at most {TOKENS_MAX} keys")]
    TooMany,
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("cannot read or write keys")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
    #[error("the key that makes this one is over")]
    MakerEnded,
    #[error("the work on the key stopped")]
    Stopped,
    #[error("cannot draw a key")]
    Randomness(#[source] getrandom::Error),
}

/// Who makes or ends a key.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    pub(crate) prefix: String,
    pub(crate) scopes: Scopes,
    pub(crate) expires_at_ms: Option<i64>,
}

/// Makes a key of `project` that may be used for no more, and no longer, than `maker` may.
///
/// # Errors
/// [`TokenError`].
pub(crate) async fn create(
    control: &Control,
    project: &ProjectId,
    maker: &Maker,
    wish: CreateToken,
) -> Result<NewToken, TokenError> {
    control.audit.ensure_writable()?;
    let scopes = scopes(maker.scopes, wish.scopes.as_deref())?;
    let label = wish.label.unwrap_or_default();
    if label.chars().count() > TOKEN_LABEL_CHARACTERS_MAX || label.chars().any(char::is_control) {
        let reason =
            format!("must be at most {TOKEN_LABEL_CHARACTERS_MAX} characters, none of control");
        return Err(Invalid::field("label", reason).into());
    }
    let sandbox = match wish.sandbox_id {
        None => None,
        Some(text) => {
            let wrong = |_| Invalid::field("sandbox_id", "is not the id of a sandbox");
            let id = SandboxId::parse(&text).map_err(wrong)?;
            let id = name::meant(&control.store, project, id).await?;
            locate(control, project, &id).await?;
            Some(id)
        }
    };
    let seconds = lifetime(wish.expires_in_days, wish.expires_in_seconds)?;
    let reach = Reach {
        scopes,
        sandbox,
        file: None,
    };
    insert(control, project, maker, reach, label, seconds).await
}

/// Makes a key for one file of a sandbox that `maker` may be used for.
///
/// # Errors
/// [`TokenError`].
pub(crate) async fn create_for_file(
    control: &Control,
    project: &ProjectId,
    maker: &Maker,
    (sandbox, file): (SandboxId, FileReach),
    seconds: u64,
) -> Result<NewToken, TokenError> {
    control.audit.ensure_writable()?;
    locate(control, project, &sandbox).await?;
    let label = format!("{} of {}", file.operation.as_str(), file.path);
    let label = label.chars().take(TOKEN_LABEL_CHARACTERS_MAX);
    let reach = Reach {
        // What it may do with its file is said by the file; it has no scope for anything else.
        scopes: Scopes::from_iter([Scope::Read]),
        sandbox: Some(sandbox),
        file: Some(file),
    };
    let label = label.filter(|character| !character.is_control()).collect();
    insert(control, project, maker, reach, label, Some(seconds)).await
}

async fn insert(
    control: &Control,
    project: &ProjectId,
    maker: &Maker,
    reach: Reach,
    label: String,
    seconds: Option<u64>,
) -> Result<NewToken, TokenError> {
    let now = now_ms();
    // Apart: whoever may make links must not be able to keep others from making keys.
    let is_for_file = reach.file.is_some();
    let count = control.store.count_api_keys(project, is_for_file, now);
    match (count.await?, is_for_file) {
        (FILE_LINKS_MAX.., true) => return Err(TokenError::TooManyLinks),
        (TOKENS_MAX.., false) => return Err(TokenError::TooMany),
        (_, _) => {}
    }
    let owner = KeyOwner::Maker(maker.prefix.clone());
    let expires_at_ms = maker.no_longer(deadline_ms(seconds, now));
    add(control, project, owner, reach, label, expires_at_ms).await
}

/// Draws a key, and writes it down.
///
/// # Errors
/// [`TokenError::Randomness`], [`TokenError::Store`], [`TokenError::MakerEnded`].
pub(crate) async fn add(
    control: &Control,
    project: &ProjectId,
    owner: KeyOwner,
    reach: Reach,
    label: String,
    expires_at_ms: Option<i64>,
) -> Result<NewToken, TokenError> {
    let key = PresentedKey::generate().map_err(TokenError::Randomness)?;
    let (made_by, person) = match owner {
        // Its person is its maker's.
        KeyOwner::Maker(prefix) => (Some(prefix), None),
        KeyOwner::Person(person) => (None, Some(person)),
    };
    let row = KeyRow {
        hash: key.hash().to_hex(),
        project: project.clone(),
        prefix: key.prefix().to_owned(),
        reach,
        label,
        made_by,
        person,
        created_at_ms: now_ms(),
        expires_at_ms,
        revoked_at_ms: None,
    };
    if !control.store.insert_api_key(&row).await? {
        return Err(TokenError::MakerEnded);
    }
    Ok(NewToken {
        token_info: present(&row),
        token: key.reveal().to_owned(),
    })
}

/// Whose a new key is.
#[derive(Debug)]
pub(crate) enum KeyOwner {
    /// Of whom the key with this prefix is.
    Maker(String),
    Person(PersonOfKey),
}

impl Maker {
    /// The earlier of a time and the maker's own end. An operator may give more than it has.
    pub(crate) fn no_longer(&self, wished: Option<i64>) -> Option<i64> {
        if self.scopes.has(Scope::Operator) {
            return wished;
        }
        match (wished, self.expires_at_ms) {
            (Some(wished), Some(own)) => Some(wished.min(own)),
            (wished, own) => wished.or(own),
        }
    }
}

fn scopes(maker: Scopes, wished: Option<&[String]>) -> Result<Scopes, TokenError> {
    let Some(words) = wished else {
        let without_operator = [
            Scope::Read,
            Scope::Create,
            Scope::Exec,
            Scope::Audit,
            Scope::Admin,
        ];
        let held = without_operator
            .into_iter()
            .filter(|scope| maker.has(*scope));
        return Ok(held.collect());
    };
    let unknown = || {
        let reason = "takes read, create, exec, audit, admin and operator";
        Invalid::field("scopes", reason)
    };
    let parsed: Option<Scopes> = words.iter().map(|word| Scope::parse(word)).collect();
    let parsed = parsed.filter(|_| !words.is_empty()).ok_or_else(unknown)?;
    if maker.include(parsed) {
        Ok(parsed)
    } else {
        Err(TokenError::Wider)
    }
}

fn lifetime(days: Option<u64>, seconds: Option<u64>) -> Result<Option<u64>, Invalid> {
    let (field, wished) = match (days, seconds) {
        (None, None) => return Ok(None),
        (Some(days), None) => ("expires_in_days", days.saturating_mul(DAY_SECONDS)),
        (None, Some(seconds)) => ("expires_in_seconds", seconds),
        (Some(_), Some(_)) => {
            let reason = "and expires_in_seconds exclude each other";
            return Err(Invalid::field("expires_in_days", reason));
        }
    };
    if (1..=TOKEN_TTL_SECONDS_MAX).contains(&wished) {
        return Ok(Some(wished));
    }
    let reason = format!("must be more than nothing and at most {TOKEN_TTL_SECONDS_MAX} seconds");
    Err(Invalid::field(field, reason))
}

/// The keys of a project, or of all, that work now, oldest first: behind a place, at most `limit`.
///
/// # Errors
/// [`StoreError`].
pub(crate) async fn list(
    control: &Control,
    whose: &Whose,
    after: Option<&KeyPlace>,
    limit: u64,
) -> Result<TokenList, StoreError> {
    let (store, now) = (&control.store, now_ms());
    // One more, which says whether there is a next page.
    let asked = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut rows = match whose {
        Whose::One(project) => store.api_keys(project, now, after, asked).await?,
        Whose::Everybody => store.all_api_keys(now, after, asked).await?,
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| has_more);
    let next_cursor = last.map(|row| KeyPlace::of(row).to_string());
    let items = rows.iter().map(|row| Token {
        project: whose.named(row.project.as_str()),
        ..present(row)
    });
    Ok(TokenList {
        items: items.collect(),
        next_cursor,
    })
}

/// How much ends with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// It alone. What it made stays.
    Key,
    /// Also the keys and links that it made, and that those made. Of a key that was revoked before
    /// as well.
    Descendants,
}

/// Ends a key, at once.
///
/// # Errors
/// [`TokenError`].
pub(crate) async fn revoke(
    control: &Arc<Control>,
    project: &ProjectId,
    maker: &Maker,
    prefix: &str,
    extent: Extent,
) -> Result<(), TokenError> {
    let found = control.store.api_key(project, prefix).await?;
    // The operator's own is replaced where it is kept; without it nobody could let them in again.
    // That of the people on the host is everybody's, and ends with the setting.
    let is_kept = |key: &KeyRow| {
        let is_own = [ADMIN_PREFIX, LOCAL_PREFIX].contains(&key.prefix.as_str());
        is_own || !maker.scopes.include(key.reach.scopes)
    };
    if found.as_ref().is_some_and(is_kept) {
        return Err(TokenError::EndsWider);
    }
    match (end_whole(control, project, prefix, extent).await?, extent) {
        (Revoked::Now, _) | (Revoked::Before, Extent::Descendants) => Ok(()),
        (Revoked::Before, Extent::Key) | (Revoked::Unknown, _) => {
            let prefix = without_secret(prefix).into_owned();
            Err(TokenError::NotFound { prefix })
        }
    }
}

/// Which links to files somebody may end without administering keys.
#[derive(Debug)]
pub(crate) struct FileLinkOf {
    pub(crate) project: ProjectId,
    pub(crate) sandbox: SandboxId,
    /// The prefix of the key that made them.
    pub(crate) made_by: String,
}

impl FileLinkOf {
    fn includes(&self, key: &KeyRow) -> bool {
        key.reach.file.is_some()
            && key.reach.sandbox.as_ref() == Some(&self.sandbox)
            && key.made_by.as_deref() == Some(self.made_by.as_str())
    }
}

/// Ends a link to a file, at once. One that is not among `of` is not told from none.
///
/// # Errors
/// [`TokenError`].
pub(crate) async fn revoke_for_file(
    control: &Arc<Control>,
    of: &FileLinkOf,
    prefix: &str,
) -> Result<(), TokenError> {
    let found = control.store.api_key(&of.project, prefix).await?;
    if !found.is_some_and(|key| of.includes(&key)) {
        return Err(TokenError::NoLink);
    }
    match end_whole(control, &of.project, prefix, Extent::Key).await? {
        Revoked::Now => Ok(()),
        Revoked::Before | Revoked::Unknown => Err(TokenError::NoLink),
    }
}

/// To its end, whoever waits for it.
pub(crate) async fn end_whole(
    control: &Arc<Control>,
    project: &ProjectId,
    prefix: &str,
    extent: Extent,
) -> Result<Revoked, TokenError> {
    let (own, prefix) = (project.clone(), prefix.to_owned());
    let work = end(Arc::clone(control), own, prefix, extent);
    let ended = control.tasks.spawn(work).await;
    Ok(ended.map_err(|_| TokenError::Stopped)??)
}

/// Revokes a key, and cuts off what it opened before anybody is told. Only of the own project: the
/// ends of keys are known by prefix alone. Of one that was revoked before as well, because whoever
/// did that may not have come this far.
async fn end(
    control: Arc<Control>,
    project: ProjectId,
    prefix: String,
    extent: Extent,
) -> Result<Revoked, StoreError> {
    let now = now_ms();
    let revoked = control.store.revoke_api_key(&project, &prefix, now).await?;
    if revoked == Revoked::Unknown {
        return Ok(revoked);
    }
    cut_off(&control, &prefix);
    if extent == Extent::Descendants {
        // Keys first: none of them makes a link any more.
        for made in control.store.revoke_made_keys(&prefix, now).await? {
            cut_off(&control, &made);
        }
        for (sandbox, link) in control.store.delete_made_links(&prefix).await? {
            control.gateway.revoke(&sandbox, &link);
        }
    }
    Ok(revoked)
}

/// Ends what a key opened. It must be revoked in the database already.
fn cut_off(control: &Control, prefix: &str) {
    control.forget_keys();
    control.key_ends.revoke(prefix);
}

pub(crate) fn present(row: &KeyRow) -> Token {
    Token {
        prefix: row.prefix.clone(),
        label: row.label.clone(),
        scopes: row.reach.scopes.words().map(str::to_owned).collect(),
        sandbox_id: row.reach.sandbox.as_ref().map(ToString::to_string),
        made_by: row.made_by.clone(),
        created_at: rfc3339(row.created_at_ms),
        expires_at: row.expires_at_ms.map(rfc3339),
        project: None,
    }
}
