//! Listing sandboxes: all, those that were asked for, or a page of them.

use std::collections::BTreeMap;

use dayfly_api::{Sandbox, SandboxList};

use crate::control::Control;
use crate::sandbox::read::present_now;
use crate::store::{Cursor, StoreError};
use crate::tenancy::whose::Whose;

/// Rows that are read at once, so that a choosy list of many does not hold them all.
const BATCH: i64 = 500;

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
        let rows = match whose {
            Whose::One(project) => store.sandboxes_after(project, after.as_ref(), BATCH).await,
            Whose::Everybody => store.all_sandboxes_after(after.as_ref(), BATCH).await,
        }?;
        let is_last = rows.len() < usize::try_from(BATCH).unwrap_or(usize::MAX);
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
