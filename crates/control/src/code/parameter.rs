//! A context in the path.

use dayfly_types::SandboxId;

use crate::http::parameter::{ContextName, parameters};

parameters! {
    Path ContextParameter {
        /// The sandbox.
        id: SandboxId,
        /// The context.
        sid: ContextName,
    }
}
