//! The audit record, as it is written around every request.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::Request;
use dayfly_types::{ProjectId, RequestId};
use http::{Method, StatusCode, Uri};
use serde_json::{Value, json};

use super::arrival::client_of;
use super::parameter::decode;
use crate::audit::{Audit, AuditHandle};
use crate::store::AuditEvent;
use crate::tenancy::key::without_secret;
use crate::time::now_ms;

pub(super) const SUBJECT_BYTES_MAX: usize = 128;
const OPERATION_BYTES_MAX: usize = 256;
const FILE_BYTES_MAX: usize = 1024;
/// Of a refusal, which anybody with a key can have as many of as they like.
const DENIED_FILE_BYTES_MAX: usize = 256;
/// The status of a request whose caller went before the answer.
const UNANSWERED: u16 = 499;

/// What was asked, as the record tells it.
#[derive(Debug, Clone)]
pub(crate) struct AuditedRequest {
    id: String,
    method: Method,
    operation: String,
    subject: Option<String>,
    uri: Uri,
    client: Option<IpAddr>,
}

pub(crate) fn asked(request: &Request) -> AuditedRequest {
    let path = request.uri().path();
    let id = request.extensions().get::<RequestId>();
    let mut operation = format!("{} {}", request.method(), without_secrets(path));
    // A path is ASCII, so any place will do.
    operation.truncate(OPERATION_BYTES_MAX);
    AuditedRequest {
        id: id.map(ToString::to_string).unwrap_or_default(),
        method: request.method().clone(),
        operation,
        subject: subject_of(path),
        uri: request.uri().clone(),
        client: client_of(request.extensions()),
    }
}

/// A path in which no whole key stands, which is easily sent where its prefix was meant.
fn without_secrets(path: &str) -> String {
    let parts: Vec<Cow<'_, str>> = path.split('/').map(without_secret).collect();
    parts.join("/")
}

/// The file that a request is about.
fn file_of(uri: &Uri) -> Option<String> {
    let named = |pair: &str| decode(pair.strip_prefix("path=")?);
    uri.query()?.split('&').find_map(named)
}

/// A path of the guest as the record has it: short, and without keys.
fn recorded(path: &str, bytes_max: usize) -> Value {
    let cut = &path[..path.floor_char_boundary(bytes_max)];
    let mut detail = json!({ "path": without_secrets(cut) });
    if cut.len() < path.len() {
        detail["path_bytes"] = path.len().into();
    }
    detail
}

const fn is_denial(status: u16) -> bool {
    matches!(status, 401 | 403 | 404)
}

/// What a path is about: the thing that it names.
fn subject_of(path: &str) -> Option<String> {
    let mut parts = path.strip_prefix("/v1/")?.split('/');
    let name = match parts.next()? {
        "sandboxes" | "snapshots" | "volumes" | "templates" | "projects" => parts.next()?,
        "me" => parts.nth(1)?,
        _ => return None,
    };
    let name = without_secret(name);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let fits = !name.is_empty() && name.len() <= SUBJECT_BYTES_MAX && name.bytes().all(is_plain);
    fits.then(|| name.into_owned())
}

impl AuditedRequest {
    pub(crate) fn entry(&self, project: &ProjectId, key_prefix: &str, status: u16) -> AuditEvent {
        AuditEvent {
            project: project.clone(),
            at_ms: now_ms(),
            key_prefix: key_prefix.to_owned(),
            request_id: self.id.clone(),
            operation: self.operation.clone(),
            subject: self.subject.clone(),
            status,
            detail: match file_of(&self.uri) {
                Some(file) if is_denial(status) => {
                    recorded(&file, DENIED_FILE_BYTES_MAX).to_string()
                }
                Some(file) => recorded(&file, FILE_BYTES_MAX).to_string(),
                None => "{}".to_owned(),
            },
            client: self.client.map(|client| client.to_string()),
        }
    }
}

/// What is noted about one request until its entry is written.
#[derive(Debug)]
pub(crate) struct PendingAudit {
    project: ProjectId,
    key_prefix: String,
    asked: AuditedRequest,
    notes: Mutex<AuditDetails>,
    handle: AuditHandle,
}

#[derive(Debug, Default)]
struct AuditDetails {
    subject: Option<String>,
    detail: Option<Value>,
    /// Another project whose record has the entry as well.
    also_of: Option<ProjectId>,
    is_taken_over: bool,
}

impl PendingAudit {
    pub(crate) fn new(
        audit: &Audit,
        project: &ProjectId,
        key_prefix: &str,
        asked: AuditedRequest,
    ) -> Self {
        Self {
            project: project.clone(),
            key_prefix: key_prefix.to_owned(),
            asked,
            notes: Mutex::default(),
            handle: audit.handle(),
        }
    }

    fn notes(&self) -> MutexGuard<'_, AuditDetails> {
        // Fields that are set one at a time: a panic leaves them whole.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names what the request is about, where the path does not.
    pub(crate) fn names_subject(&self, subject: &str) {
        self.notes().subject = Some(subject.to_owned());
    }

    /// Says more than method, path and status.
    pub(crate) fn adds_detail(&self, detail: Value) {
        self.notes().detail = Some(detail);
    }

    /// Says one thing more.
    pub(crate) fn adds_to_detail(&self, name: &str, value: &str) {
        let mut notes = self.notes();
        notes.detail.get_or_insert_with(|| json!({}))[name] = value.into();
    }

    /// Has the entry in the record of another project too: what an operator did there.
    pub(crate) fn is_also_of(&self, project: &ProjectId) {
        let is_other = *project != self.project;
        self.notes().also_of = is_other.then(|| project.clone());
    }

    /// Names the file of the guest, where the query does not.
    pub(crate) fn names_file(&self, path: &str) {
        self.adds_detail(recorded(path, FILE_BYTES_MAX));
    }

    /// From here on the entry is the caller's to write, with [`PendingAudit::write`]. Gives what was
    /// noted until now.
    pub(crate) fn take_over(&self) -> Value {
        let mut notes = self.notes();
        notes.is_taken_over = true;
        notes.detail.take().unwrap_or_else(|| json!({}))
    }

    pub(crate) fn write(&self, status: u16, detail: &Value) {
        let entry = AuditEvent {
            detail: detail.to_string(),
            ..self.entry(status)
        };
        self.handle.record_now(entry);
    }

    /// The entry is written when the answer is known, or when nobody waits for it any more.
    pub(crate) fn until_answered(self: &Arc<Self>) -> Unanswered {
        Unanswered(Some(Arc::clone(self)))
    }

    fn entry(&self, status: u16) -> AuditEvent {
        let mut entry = self.asked.entry(&self.project, &self.key_prefix, status);
        let mut notes = self.notes();
        if let Some(subject) = notes.subject.clone() {
            entry.subject = Some(subject);
        }
        if let Some(detail) = notes.detail.take() {
            entry.detail = detail.to_string();
        }
        entry
    }

    /// The entry, and that of the other project.
    fn entries(&self, status: u16) -> impl Iterator<Item = AuditEvent> {
        let entry = self.entry(status);
        let also = self.notes().also_of.take().map(|project| AuditEvent {
            project,
            ..entry.clone()
        });
        std::iter::once(entry).chain(also)
    }

    fn is_recorded(&self, status: u16) -> bool {
        let reads = matches!(self.asked.method, Method::GET | Method::HEAD);
        let is_denied = is_denial(status);
        // Who asks too fast would fill the record with it.
        let is_too_fast = status == StatusCode::TOO_MANY_REQUESTS.as_u16();
        !self.notes().is_taken_over && !is_too_fast && (!reads || is_denied)
    }
}

/// A request whose answer is not known yet.
#[derive(Debug)]
pub(crate) struct Unanswered(Option<Arc<PendingAudit>>);

impl Unanswered {
    pub(crate) async fn answer(mut self, status: StatusCode) {
        let Some(notebook) = self.0.take() else {
            return;
        };
        let status = status.as_u16();
        if notebook.is_recorded(status) {
            for entry in notebook.entries(status) {
                // Waits while the queue is full: nobody can outrun the record.
                notebook.handle.record(entry).await;
            }
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(notebook) = self.0.take()
            && notebook.is_recorded(UNANSWERED)
        {
            for entry in notebook.entries(UNANSWERED) {
                notebook.handle.record_now(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_whole_key_and_no_endless_name_gets_into_the_record() {
        let key = "dfk_abcdefgh0123456789";
        let path = format!("/v1/me/tokens/{key}");
        assert_eq!(without_secrets(&path), "/v1/me/tokens/dfk_abcdefgh");
        assert_eq!(subject_of(&path).as_deref(), Some("dfk_abcdefgh"));
        let long = format!("/v1/sandboxes/{}", "a".repeat(60_000));
        assert_eq!(subject_of(&long), None);
        let request = Request::builder().uri(&long).body(Default::default());
        assert_eq!(
            asked(&request.unwrap()).operation.len(),
            OPERATION_BYTES_MAX
        );
        assert_eq!(file_of(&long.parse().unwrap()), None);
        let write = "/v1/sandboxes/a/fs?mode=600&path=%2Fetc%2Fa%20b";
        assert_eq!(file_of(&write.parse().unwrap()).unwrap(), "/etc/a b");
        let secret = format!("/x?path=/tmp/{key}");
        let file = file_of(&secret.parse().unwrap()).unwrap();
        assert_eq!(
            recorded(&file, FILE_BYTES_MAX),
            json!({"path": "/tmp/dfk_abcdefgh"})
        );
        let long = format!("/x?path=x{}", "%C3%A4".repeat(9_000));
        let long = recorded(&file_of(&long.parse().unwrap()).unwrap(), FILE_BYTES_MAX);
        assert_eq!(long["path"].as_str().unwrap().len(), FILE_BYTES_MAX - 1);
        assert_eq!(long["path_bytes"], 18_001);
        assert_eq!(subject_of("/v1/sandboxes/"), None);
        assert_eq!(subject_of("/v1/volumes/mine").as_deref(), Some("mine"));
    }
}
