//! Listing sandboxes: all, those that were asked for, or a page of them.

use std::collections::BTreeMap;

use dayfly_api::{Sandbox, SandboxList};

use crate::control::Control;
use crate::sandbox::read::present_now;
use crate::store::{Cursor, StoreError};
use crate::tenancy::whose::Whose;

/// Rows that are read at once, so that a choosy list of many does not hold them all.
const BATCH: usize = 500;

/// Which sandboxes are wanted. Nothing said: all.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub status: Option<String>,
    pub template: Option<String>,
    /// All of these labels, with these values.
    pub metadata: BTreeMap<String, String>,
    /// Behind this place in the list.
    pub after: Option<Cursor>,
    /// At most so many.
    pub limit: Option<usize>,
}

impl Wanted {
    /// Whether it takes whatever comes.
    fn takes_any(&self) -> bool {
        self.status.is_none() && self.template.is_none() && self.metadata.is_empty()
    }

    /// How many rows are worth reading while this many have been found: a short page of any must
    /// not cost what a long one does. One more than asked for, which says that there are others.
    fn batch(&self, found: usize) -> usize {
        match self.limit {
            Some(limit) if self.takes_any() => BATCH.min(limit.saturating_sub(found) + 1),
            Some(_) | None => BATCH,
        }
    }

    fn fits(&self, sandbox: &Sandbox) -> bool {
        let is = |wanted: &Option<String>, has: &str| wanted.as_ref().is_none_or(|it| it == has);
        let has_label = |(key, value): (&String, &String)| sandbox.metadata.get(key) == Some(value);
        is(&self.status, &sandbox.status)
            && is(&self.template, &sandbox.template)
            && self.metadata.iter().all(has_label)
    }
}

/// The sandboxes of a project, or of all, that are wanted, oldest first.
///
/// # Errors
/// [`StoreError`].
pub(crate) async fn list(
    control: &Control,
    whose: &Whose,
    wanted: &Wanted,
) -> Result<SandboxList, StoreError> {
    let mut items = Vec::new();
    let mut after = wanted.after.clone();
    loop {
        let store = &control.store;
        let batch = wanted.batch(items.len());
        let most = i64::try_from(batch).unwrap_or(i64::MAX);
        let rows = match whose {
            Whose::One(project) => store.sandboxes_after(project, after.as_ref(), most).await,
            Whose::Everybody => store.all_sandboxes_after(after.as_ref(), most).await,
        }?;
        let is_last = rows.len() < batch;
        for row in rows {
            // State is the node's last word, so it cannot be chosen by the database.
            let mut sandbox = present_now(control, &row);
            sandbox.project = whose.named(row.project.as_str());
            if wanted.fits(&sandbox) {
                if wanted.limit == Some(items.len()) {
                    // One more than asked for: there is a next page.
                    let next_cursor = after.map(|cursor| cursor.to_string());
                    return Ok(SandboxList { items, next_cursor });
                }
                items.push(sandbox);
            }
            after = Some(Cursor::of(&row));
        }
        if is_last {
            let next_cursor = None;
            return Ok(SandboxList { items, next_cursor });
        }
    }
}
