//! Sandboxes: create, look, delete.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, pending};
use std::time::Instant;

use dayfly_api::{CreateSandbox, Sandbox, SandboxList};
use reqwest::Url;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;
use crate::project_choice::ProjectChoice;
use crate::retry;
use crate::wait::{WaitProgress, Waits};

pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// How waiting for a sandbox ended.
enum Attempt<S> {
    Created(Box<Sandbox>),
    Stopped(S),
}

/// Which sandboxes a list is to have. Nothing named: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxFilter {
    pub status: Option<String>,
    pub template: Option<String>,
    /// All of these labels, with these values.
    pub metadata: BTreeMap<String, String>,
    pub projects: ProjectChoice,
}

impl SandboxFilter {
    fn page(&self, mut url: Url, cursor: Option<&str>) -> Url {
        let mut pairs = url.query_pairs_mut();
        pairs.append_pair("limit", &limits::LIST_PAGE_LENGTH.to_string());
        let texts = [
            ("status", self.status.as_deref()),
            ("template", self.template.as_deref()),
            ("cursor", cursor),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                pairs.append_pair(name, value);
            }
        }
        if !self.metadata.is_empty() {
            // Texts always serialise.
            let labels = serde_json::to_string(&self.metadata).unwrap_or_default();
            pairs.append_pair("metadata", &labels);
        }
        drop(pairs);
        self.projects.add_to(&mut url);
        url
    }
}

impl Client {
    /// Creates a sandbox. It runs user code when this returns.
    ///
    /// Carries a fresh idempotency key, so that it can be sent again when the connection is lost.
    ///
    /// # Errors
    /// [`ClientError::Api`] when it was refused. After [`ClientError::Timeout`] and
    /// [`ClientError::Lost`] a sandbox may exist; its time to live ends it.
    pub async fn create_sandbox(&self, request: &CreateSandbox) -> Result<Sandbox, ClientError> {
        let key = fresh_key()?;
        let deadline = if request.disk_only == Some(true) {
            limits::BOOT_DEADLINE
        } else {
            limits::CALL_DEADLINE
        };
        let answer = retry::repeat(|| {
            let call = self.http.post(self.address(&["v1", "sandboxes"]));
            let call = call.header(IDEMPOTENCY_KEY, &key).json(request);
            self.call(call, deadline)
        })
        .await?;
        decode(&answer)
    }

    /// Creates a sandbox, and waits while its template is baked, the host has no room, or the node
    /// is starting.
    ///
    /// `on_progress` hears of each refusal. Waits at most half an hour for a bake, a minute for
    /// room, and half a minute for a node.
    ///
    /// # Errors
    /// As [`Client::create_sandbox`].
    pub async fn create_when_ready(
        &self,
        request: &CreateSandbox,
        on_progress: impl FnMut(&WaitProgress),
    ) -> Result<Sandbox, ClientError> {
        match self
            .create_until(request, pending::<Infallible>(), on_progress)
            .await?
        {
            Attempt::Created(sandbox) => Ok(*sandbox),
            Attempt::Stopped(never) => match never {},
        }
    }

    /// As [`Client::create_when_ready`], but gives up when `stop` resolves.
    ///
    /// `None`: stopped, and nothing was created. An attempt that is under way is carried to its
    /// end first, so a sandbox that it made is returned and not lost.
    ///
    /// # Errors
    /// As [`Client::create_sandbox`].
    pub async fn create_when_ready_unless(
        &self,
        request: &CreateSandbox,
        stop: impl Future<Output = ()>,
        on_progress: impl FnMut(&WaitProgress),
    ) -> Result<Option<Sandbox>, ClientError> {
        match self.create_until(request, stop, on_progress).await? {
            Attempt::Created(sandbox) => Ok(Some(*sandbox)),
            Attempt::Stopped(()) => Ok(None),
        }
    }

    async fn create_until<S>(
        &self,
        request: &CreateSandbox,
        stop: impl Future<Output = S>,
        mut on_progress: impl FnMut(&WaitProgress),
    ) -> Result<Attempt<S>, ClientError> {
        tokio::pin!(stop);
        let (start, mut waits) = (Instant::now(), Waits::default());
        loop {
            let wait = match self.create_sandbox(request).await {
                Ok(sandbox) => return Ok(Attempt::Created(Box::new(sandbox))),
                Err(error) => waits.after(error, start.elapsed())?,
            };
            on_progress(&wait.progress);
            tokio::select! {
                biased;
                stopped = &mut stop => return Ok(Attempt::Stopped(stopped)),
                () = tokio::time::sleep(wait.pause) => {}
            }
        }
    }

    /// Reads one sandbox.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn get_sandbox(&self, id: &str) -> Result<Sandbox, ClientError> {
        self.get_json(self.sandbox_address(id, &[])?).await
    }

    /// Reads all sandboxes of the key's project, oldest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list_sandboxes(&self) -> Result<Vec<Sandbox>, ClientError> {
        self.find_sandboxes(&SandboxFilter::default()).await
    }

    /// Reads those that have everything that the filter names, oldest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn find_sandboxes(
        &self,
        filter: &SandboxFilter,
    ) -> Result<Vec<Sandbox>, ClientError> {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let url = filter.page(self.address(&["v1", "sandboxes"]), cursor.as_deref());
            let list: SandboxList = self.get_json(url).await?;
            found.extend(list.items);
            if list.next_cursor.is_none() || list.next_cursor == cursor {
                return Ok(found);
            }
            cursor = list.next_cursor;
        }
    }

    /// Deletes a sandbox with all that runs in it. One that is gone already is a success.
    ///
    /// # Errors
    /// [`ClientError`]; the sandbox may still exist then.
    pub async fn delete_sandbox(&self, id: &str) -> Result<(), ClientError> {
        self.delete(self.sandbox_address(id, &[])?).await
    }

    /// The same of another project, for an operator.
    ///
    /// # Errors
    /// [`ClientError`]; the sandbox may still exist then.
    pub async fn delete_sandbox_of(&self, project: &str, id: &str) -> Result<(), ClientError> {
        let mut url = self.sandbox_address(id, &[])?;
        ProjectChoice::One(project.to_owned()).add_to(&mut url);
        self.delete(url).await
    }
}

/// A key that no other request has: 128 random bits.
pub(crate) fn fresh_key() -> Result<String, ClientError> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).map_err(|error| ClientError::Protocol {
        what: format!("the system gives no randomness: {error}"),
    })?;
    Ok(hex::encode(random))
}
