//! Choosing one child of a fork.

use std::collections::BTreeMap;
use std::sync::Arc;

use dayfly_api::{PromoteSandbox, Promoted};
use dayfly_node_api::LifecycleChange;
use dayfly_types::{ProjectId, SandboxId};
use futures::StreamExt;

use crate::control::Control;
use crate::sandbox::delete::{self, DeleteError};
use crate::sandbox::fork_spec::explore_ttl;
use crate::sandbox::lifetime::ttl_default;
use crate::sandbox::read::{FindError, row_alive};
use crate::sandbox::state::{StateError, set_lifecycle};
use crate::store::{SandboxRow, StoreError};

/// Deletes that one promote asks the node for at once.
const DELETES_MAX: usize = 8;

/// Why no child was chosen. Nothing was deleted.
#[derive(Debug, thiserror::Error)]
pub enum PromoteError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("sandbox {id} is not a child of a fork")]
    NoChild { id: SandboxId },
    #[error("sandbox {id} is of the tree {own}, not of {given}")]
    OtherTree {
        id: SandboxId,
        own: String,
        given: String,
    },
    #[error("cannot give the sandbox its usual time to live")]
    Lifecycle(#[source] StateError),
    #[error("cannot list the siblings")]
    Store(#[source] StoreError),
}

/// Keeps a child for good, and deletes its siblings when that is asked for. The source of the
/// fork is not a sibling.
///
/// # Errors
/// [`PromoteError`]. A sibling that could not be deleted is in the answer.
pub async fn promote(
    control: Arc<Control>,
    project: ProjectId,
    id: SandboxId,
    wish: PromoteSandbox,
    key_prefix: &str,
) -> Result<Promoted, PromoteError> {
    let row = row_alive(&control, &project, &id).await?;
    let Some(tree) = row.fork_tree.clone() else {
        return Err(PromoteError::NoChild { id });
    };
    // A client that lost its child's labels sends its parent's tree, whose children are others'.
    let given = wish.tree_id.filter(|given| !given.is_empty());
    if let Some(given) = given.filter(|given| *given != tree) {
        return Err(PromoteError::OtherTree {
            id,
            own: tree,
            given,
        });
    }
    end_exploration(&control, &row).await?;
    let (deleted, failures) = match wish.cleanup_siblings {
        Some(true) => delete_siblings(&control, &row, &tree, key_prefix).await?,
        Some(false) | None => Default::default(),
    };
    Ok(Promoted {
        winner: id.to_string(),
        tree_id: tree,
        deleted,
        failures,
    })
}

/// Replaces the deadline of a candidate by that of any sandbox, unless somebody set another.
async fn end_exploration(control: &Control, row: &SandboxRow) -> Result<(), PromoteError> {
    let Some(candidate) = explore_ttl(&row.spec.metadata) else {
        return Ok(());
    };
    let live = control.view.get(&row.id);
    let lifecycle = live.map_or(row.lifetime, |live| live.report.lifecycle);
    if lifecycle.ttl_seconds != Some(candidate) {
        return Ok(());
    }
    let change = LifecycleChange {
        ttl_seconds: Some(ttl_default(lifecycle.persistent)),
        ..LifecycleChange::default()
    };
    set_lifecycle(control, &row.project, &row.id, change)
        .await
        .map(drop)
        .map_err(PromoteError::Lifecycle)
}

type Outcome = (Vec<String>, BTreeMap<String, String>);

async fn delete_siblings(
    control: &Arc<Control>,
    winner: &SandboxRow,
    tree: &str,
    key_prefix: &str,
) -> Result<Outcome, PromoteError> {
    let rows = control
        .store
        .fork_tree(&winner.project, tree)
        .await
        .map_err(PromoteError::Store)?;
    let siblings = rows.into_iter().filter(|row| row.id != winner.id);
    let delete = async |row: SandboxRow| {
        let gone =
            delete::delete(Arc::clone(control), row.project, row.id.clone(), key_prefix).await;
        (row.id.to_string(), gone)
    };
    let outcomes: Vec<(String, Result<(), DeleteError>)> = futures::stream::iter(siblings)
        .map(delete)
        .buffered(DELETES_MAX)
        .collect()
        .await;
    let (mut deleted, mut failures) = Outcome::default();
    for (id, outcome) in outcomes {
        match outcome {
            Ok(()) => deleted.push(id),
            Err(error) => {
                failures.insert(id, error.to_string());
            }
        }
    }
    Ok((deleted, failures))
}
