//! Whether a sandbox could be made here: found out when somebody asks, and not too often.

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

/// What is remembered of the last look.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    last: Mutex<Option<(Instant, Result<(), NotReady>)>>,
}

/// Whether there is a template to make a sandbox from, now or a second ago. At most one call to
/// the node is under way, however many ask.
pub(crate) async fn look(control: &Control) -> Result<(), NotReady> {
    let mut last = control.readiness.last.lock().await;
    if let Some((at, found)) = last.as_ref()
        && at.elapsed() < KEPT
    {
        return found.clone();
    }
    let found = match control.node.templates().await {
        Ok(templates) => judge(&templates),
        Err(_) => Err(NotReady {
            code: ErrorCode::NodeUnavailable,
            detail: "the node does not say what templates it has",
            remedy: "look at the log of the node process",
        }),
    };
    *last = Some((Instant::now(), found.clone()));
    found
}

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
