//! What sandboxes and projects used over time.

use dayfly_api::{SandboxMetrics, SandboxSample, UsageHour, UsageHourList};

use crate::project_choice::ProjectChoice;
use crate::{Client, ClientError};

/// Which part of a record is wanted that is kept over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageSpan {
    /// From this time on (RFC 3339).
    pub since: Option<String>,
    /// Up to this time (RFC 3339).
    pub until: Option<String>,
    /// Of samples, one sandbox has one project: all of them cannot be asked for.
    pub projects: ProjectChoice,
}

impl Client {
    /// What a sandbox used over its life, oldest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn sandbox_metrics(
        &self,
        id: &str,
        span: &UsageSpan,
    ) -> Result<Vec<SandboxSample>, ClientError> {
        let url = span.address(self, &["v1", "sandboxes", id, "metrics"]);
        let metrics: SandboxMetrics = self.get_json(url).await?;
        Ok(metrics.items)
    }

    /// What projects used in each hour, oldest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn usage_hours(&self, span: &UsageSpan) -> Result<Vec<UsageHour>, ClientError> {
        let url = span.address(self, &["v1", "usage", "hours"]);
        let mut hours = Vec::new();
        let mut cursor = None::<String>;
        loop {
            let mut page = url.clone();
            if let Some(cursor) = &cursor {
                page.query_pairs_mut().append_pair("cursor", cursor);
            }
            let list: UsageHourList = self.get_json(page).await?;
            hours.extend(list.items);
            match list.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(hours),
            }
        }
    }
}

impl UsageSpan {
    fn address(&self, client: &Client, parts: &[&str]) -> reqwest::Url {
        let mut url = client.address(parts);
        for (name, value) in [("since", &self.since), ("until", &self.until)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        self.projects.add_to(&mut url);
        url
    }
}
