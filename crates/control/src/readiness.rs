//! Whether there is something to make a sandbox from: found out when somebody asks, and not too
//! often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dayfly_node_api::{BakeState, NodeCalls, TemplateReport};
use dayfly_types::ErrorCode;
use tokio::sync::Mutex;

use crate::control::Control;

/// Whoever asks again within this long is told the same: anybody may ask, and each look is a call
/// to the node.
const KEPT: Duration = Duration::from_secs(1);

/// Why no sandbox can be made, though nothing is wrong with the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotReady {
    pub(crate) code: ErrorCode,
    pub(crate) detail: &'static str,
    pub(crate) remedy: &'static str,
}

/// When a look ended, and what it found.
type Look = (Instant, Result<(), NotReady>);

/// What is remembered of the last look.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    /// Held while one is under way.
    last: Arc<Mutex<Option<Look>>>,
}

/// Whether there is a template to make a sandbox from, now or a second ago. At most one call to
/// the node is under way, however many ask, and it goes on when they hang up.
pub(crate) async fn look(control: &Arc<Control>) -> Result<(), NotReady> {
    let mut last = Arc::clone(&control.readiness.last).lock_owned().await;
    if let Some((at, found)) = last.as_ref()
        && at.elapsed() < KEPT
    {
        return found.clone();
    }
    let looking = Arc::clone(control);
    let look = control.tasks.spawn(async move {
        let found = match looking.node.templates().await {
            Ok(templates) => judge(&templates),
            Err(_) => Err(SILENT),
        };
        *last = Some((Instant::now(), found.clone()));
        found
    });
    look.await.unwrap_or(Err(SILENT))
}

const SILENT: NotReady = NotReady {
    code: ErrorCode::NodeUnavailable,
    detail: "the node does not say what templates it has",
    remedy: "look at the log of the node process",
};

fn judge(templates: &[TemplateReport]) -> Result<(), NotReady> {
    if templates.iter().any(|template| template.is_usable) {
        return Ok(());
    }
    let is_under_way =
        |template: &TemplateReport| !matches!(template.state, BakeState::Failed { .. });
    if templates.iter().any(is_under_way) {
        return Err(NotReady {
            code: ErrorCode::TemplateBaking,
            detail: "no template is baked yet",
            remedy: "wait; GET /v1/templates shows how far the bake is",
        });
    }
    Err(NotReady {
        code: ErrorCode::TemplateFailed,
        detail: "no template could be baked",
        remedy: "GET /v1/templates shows why; `dayfly template bake NAME` tries again",
    })
}
