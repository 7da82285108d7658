//! Carrying the audit record, the events and the decisions about egress of all projects elsewhere.

use std::time::Duration;

use dayfly_api::ExportPage;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;

/// How far the export has come: the numbers of the last that were carried, 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportNumbers {
    pub audit: u64,
    pub event: u64,
    pub egress: u64,
}

impl Client {
    /// What comes behind these numbers, at most `limit` of each kind. Waits for so many seconds when
    /// there is nothing. For operators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn export(
        &self,
        after: ExportNumbers,
        limit: u64,
        wait: Duration,
    ) -> Result<ExportPage, ClientError> {
        let mut url = self.address(&["v1", "export"]);
        url.query_pairs_mut()
            .append_pair("after_audit", &after.audit.to_string())
            .append_pair("after_event", &after.event.to_string())
            .append_pair("limit", &limit.to_string())
            .append_pair("wait_seconds", &wait.as_secs().to_string());
        // A server of the release before does not know it.
        if after.egress > 0 {
            url.query_pairs_mut()
                .append_pair("after_egress", &after.egress.to_string());
        }
        let response = self.call(self.http.get(url), limits::CALL_DEADLINE + wait);
        decode(&response.await?)
    }
}
