//! Files and outputs of sandboxes as resources:
//!
//! ```text
//! dayfly://sandbox/ID/files/PATH            a file, by its absolute path
//! dayfly://sandbox/ID/output/EXEC/stdout    what a command printed
//! ```
//! Both take `?offset=N`. One read gives a limited part, and says so when there is more.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dayfly_client::{Client, ListOptions, ReadOptions};
use dayfly_types::limits::{MCP_RESOURCE_BYTES_MAX, MCP_RESOURCES_MAX};
use dayfly_types::{percent_decode, percent_encode};
use rmcp::model::{MetaObject, Resource, ResourceContents, ResourceTemplate};

use crate::error::ToolError;
use crate::names::path_in_line;

const SCHEME: &str = "dayfly://sandbox/";
const TEXT: &str = "text/plain";
const BYTES: &str = "application/octet-stream";

/// What an address means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResourceAddress {
    pub(crate) sandbox: String,
    pub(crate) what: Addressed,
    pub(crate) offset: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Addressed {
    File { path: String },
    Output { exec: String, stream: String },
}

impl ResourceAddress {
    /// Reads an address; `None` when it is none of ours.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        let (rest, offset) = match rest.split_once('?') {
            Some((rest, query)) => (rest, query.strip_prefix("offset=")?.parse().ok()?),
            None => (rest, 0),
        };
        let (sandbox, rest) = rest.split_once('/')?;
        let (kind, rest) = rest.split_once('/')?;
        let what = match kind {
            "files" => Addressed::File {
                path: format!("/{}", percent_decode(rest.trim_start_matches('/'))?),
            },
            "output" => {
                let (exec, stream) = rest.split_once('/')?;
                if !matches!(stream, "stdout" | "stderr") {
                    return None;
                }
                Addressed::Output {
                    exec: exec.to_owned(),
                    stream: stream.to_owned(),
                }
            }
            _ => return None,
        };
        Some(Self {
            sandbox: sandbox.to_owned(),
            what,
            offset,
        })
    }
}

/// A link to a file.
pub(crate) fn file_link(sandbox: &str, path: &str, size: Option<u64>) -> Resource {
    let absolute = match path.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None => format!("workspace/{path}"),
    };
    let uri = format!("{SCHEME}{sandbox}/files/{}", percent_encode(&absolute));
    let resource = Resource::new(uri, path);
    match size {
        Some(size) => resource.with_size(size),
        None => resource,
    }
}

/// A link to all that a command printed.
pub(crate) fn output_link(sandbox: &str, exec: &str, stream: &str, size: u64) -> Resource {
    let uri = format!("{SCHEME}{sandbox}/output/{exec}/{stream}");
    Resource::new(uri, format!("the whole {stream}"))
        .with_mime_type(TEXT)
        .with_size(size)
}

/// The forms of addresses.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let file = format!("{SCHEME}{{id}}/files/{{+path}}{{?offset}}");
    let output = format!("{SCHEME}{{id}}/output/{{exec}}/{{stream}}{{?offset}}");
    vec![
        ResourceTemplate::new(file, "file")
            .with_title("A file of a sandbox")
            .with_description("By its absolute path, without the first slash."),
        ResourceTemplate::new(output, "output")
            .with_title("What a command printed")
            .with_description("stream is stdout or stderr."),
    ]
}

/// The files of a workspace.
pub(crate) async fn list(client: &Client, sandbox: &str) -> Result<Vec<Resource>, ToolError> {
    let options = ListOptions {
        limit: Some(MCP_RESOURCES_MAX),
        ..ListOptions::default()
    };
    let listing = client.list_directory_with(sandbox, "/workspace", &options);
    let listing = listing.await?;
    let files = listing.entries.iter().filter(|entry| !entry.is_dir);
    let files = files.map(|entry| file_link(sandbox, &entry.path, Some(entry.size)));
    Ok(files.collect())
}

/// A part of a resource.
struct Part {
    offset: u64,
    bytes: Vec<u8>,
    total: Option<u64>,
}

/// Reads a resource, or as much of it as one read gives.
pub(crate) async fn read(
    client: &Client,
    sandbox: &str,
    uri: &str,
    address: &ResourceAddress,
) -> Result<ResourceContents, ToolError> {
    let offset = address.offset;
    let mut part = match &address.what {
        Addressed::File { path } => read_file(client, sandbox, path, offset).await?,
        Addressed::Output { exec, stream } => {
            read_output(client, sandbox, (exec, stream), offset).await?
        }
    };
    whole_characters(&mut part.bytes);
    let end = part.offset.saturating_add(part.bytes.len() as u64);
    let is_cut = part.total.is_none_or(|total| end < total);
    let contents = match String::from_utf8(part.bytes) {
        Ok(text) => ResourceContents::text(text, uri).with_mime_type(TEXT),
        Err(error) => {
            let blob = STANDARD.encode(error.as_bytes());
            ResourceContents::blob(blob, uri).with_mime_type(BYTES)
        }
    };
    if !is_cut && part.offset == 0 {
        return Ok(contents);
    }
    let mut meta = MetaObject::default();
    meta.0
        .insert("dayfly/offset".to_owned(), part.offset.into());
    meta.0.insert("dayfly/end".to_owned(), end.into());
    meta.0
        .insert("dayfly/total_bytes".to_owned(), part.total.into());
    Ok(contents.with_meta(meta))
}

/// Drops a last character that a limit cut, so that a text stays one.
fn whole_characters(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
        && bytes.len() >= MCP_RESOURCE_BYTES_MAX
    {
        bytes.truncate(error.valid_up_to());
    }
}

async fn read_file(
    client: &Client,
    sandbox: &str,
    path: &str,
    offset: u64,
) -> Result<Part, ToolError> {
    let entry = client.stat(sandbox, path).await?;
    if entry.is_dir {
        let what = format!("{} is a directory", path_in_line(path));
        return Err(ToolError::hinted(what, "use list_files"));
    }
    let options = ReadOptions {
        offset,
        ..ReadOptions::default()
    };
    let mut content = client.read_file_with(sandbox, path, &options).await?;
    let mut bytes: Vec<u8> = Vec::new();
    let mut is_whole = false;
    while bytes.len() < MCP_RESOURCE_BYTES_MAX {
        let piece: Option<Bytes> = content.next().await?;
        let Some(piece) = piece else {
            is_whole = true;
            break;
        };
        bytes.extend_from_slice(&piece);
    }
    is_whole &= bytes.len() <= MCP_RESOURCE_BYTES_MAX;
    bytes.truncate(MCP_RESOURCE_BYTES_MAX);
    let end = offset.saturating_add(bytes.len() as u64);
    // A link says nothing of what it leads to.
    let told = (!entry.is_symlink).then_some(entry.size);
    Ok(Part {
        offset,
        total: if is_whole { Some(end) } else { told },
        bytes,
    })
}

async fn read_output(
    client: &Client,
    sandbox: &str,
    (exec, stream): (&str, &str),
    offset: u64,
) -> Result<Part, ToolError> {
    let process = client.get_process(sandbox, exec).await?;
    let extent = match stream {
        "stderr" => process.stderr,
        _ => process.stdout,
    };
    let limit = MCP_RESOURCE_BYTES_MAX as u64;
    let (offset, bytes) = client
        .read_output(sandbox, exec, stream, offset, limit)
        .await?;
    Ok(Part {
        offset,
        bytes: bytes.to_vec(),
        total: Some(extent.end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_reads_back_as_what_it_was_made_of() {
        for (path, absolute) in [
            ("/etc/hosts", "/etc/hosts"),
            ("a b/ü?.txt", "/workspace/a b/ü?.txt"),
        ] {
            let link = file_link("sb-local-a", path, Some(3));
            let address = ResourceAddress::parse(&link.uri).unwrap();
            assert_eq!(address.sandbox, "sb-local-a");
            let path = absolute.to_owned();
            assert_eq!(address.what, Addressed::File { path });
        }
        let link = output_link("work", "ex-1", "stderr", 9);
        let address = ResourceAddress::parse(&format!("{}?offset=7", link.uri)).unwrap();
        assert_eq!(address.offset, 7);
        let (exec, stream) = ("ex-1".to_owned(), "stderr".to_owned());
        assert_eq!(address.what, Addressed::Output { exec, stream });
    }

    #[test]
    fn other_addresses_are_none_of_ours() {
        for uri in [
            "file:///etc/passwd",
            "dayfly://sandbox/a",
            "dayfly://sandbox/a/secrets/b",
            "dayfly://sandbox/a/output/e/stdin",
            "dayfly://sandbox/a/files/%zz",
            "dayfly://sandbox/a/files/x?limit=3",
        ] {
            assert_eq!(ResourceAddress::parse(uri), None, "{uri}");
        }
    }
}
