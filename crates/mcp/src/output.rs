//! What a call of a tool gives.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_types::limits::MCP_IMAGE_BYTES_MAX;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::Value;

use crate::error::ToolError;

/// A result in the making.
#[derive(Debug, Default)]
pub(crate) struct ToolOutput {
    blocks: Vec<ContentBlock>,
    structured: Option<Value>,
    is_error: bool,
    image_bytes: usize,
}

impl ToolOutput {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            blocks: vec![ContentBlock::text(text)],
            ..Self::default()
        }
    }

    pub(crate) fn error(error: &ToolError) -> Self {
        Self {
            is_error: true,
            ..Self::text(error.text())
        }
    }

    /// Marks it as a failure that the model should see.
    #[must_use]
    pub(crate) fn failed_if(mut self, is_error: bool) -> Self {
        self.is_error |= is_error;
        self
    }

    #[must_use]
    pub(crate) fn structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// A text of its own behind the others: a client keeps them apart, so that nothing in one can
    /// pose as another.
    pub(crate) fn add_text(&mut self, text: String) {
        self.blocks.push(ContentBlock::text(text));
    }

    pub(crate) fn add_link(&mut self, resource: Resource) {
        self.blocks.push(ContentBlock::resource_link(resource));
    }

    /// Adds an image in base 64, if it is one and there is room; says whether. A provider refuses a
    /// whole request that has a broken one, and a guest may display anything.
    #[must_use]
    pub(crate) fn add_image(&mut self, data: &str, mime_type: &str) -> bool {
        let data: String = data.split_ascii_whitespace().collect();
        let has_room = self.image_bytes + data.len() <= MCP_IMAGE_BYTES_MAX;
        let is_added = has_room && is_image(&data, mime_type);
        if is_added {
            self.image_bytes += data.len();
            self.blocks.push(ContentBlock::image(data, mime_type));
        }
        is_added
    }

    pub(crate) fn finish(self) -> CallToolResult {
        let mut result = if self.is_error {
            CallToolResult::error(self.blocks)
        } else {
            CallToolResult::success(self.blocks)
        };
        result.structured_content = self.structured;
        result
    }
}

fn is_image(data: &str, mime_type: &str) -> bool {
    let Ok(bytes) = STANDARD.decode(data) else {
        return false;
    };
    match mime_type {
        "image/png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
        "image/gif" => bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a"),
        "image/webp" => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(data: &str, mime_type: &str) -> usize {
        let mut output = ToolOutput::default();
        let is_added = output.add_image(data, mime_type);
        assert_eq!(is_added, output.blocks.len() == 1);
        output.blocks.len()
    }

    #[test]
    fn what_is_no_image_is_not_sent_as_one() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        assert_eq!(images(&png, "image/png"), 1);
        assert_eq!(images(&format!("{png}\n"), "image/png"), 1);
        assert_eq!(images(&png, "image/jpeg"), 0);
        assert_eq!(images(&png, "image/svg+xml"), 0);
        assert_eq!(images("not base 64!", "image/png"), 0);
        assert_eq!(images("", "image/png"), 0);
        let webp = STANDARD.encode(b"RIFF\0\0\0\0WEBP");
        assert_eq!(images(&webp, "image/webp"), 1);
    }

    #[test]
    fn images_have_room_together() {
        let mut long = b"GIF89a".to_vec();
        long.resize(MCP_IMAGE_BYTES_MAX / 2, 0);
        let long = STANDARD.encode(long);
        let mut output = ToolOutput::default();
        assert!(output.add_image(&long, "image/gif"));
        assert!(!output.add_image(&long, "image/gif"));
    }
}
