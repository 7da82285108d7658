//! The one shape of every error answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::hint::Advice;

/// Flat on purpose: the published clients read `error` as a string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What went wrong, why, for a person. Never empty.
    pub error: String,
    /// A stable word that programs may match; the list is in the documentation.
    pub code: String,
    #[serde(flatten)]
    pub advice: Advice,
    /// Finds this request in the server's log.
    pub request_id: String,
    /// With `template_baking`: how far the bake is, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}
