//! How a process writes its log.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a line of the log is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object on each line, for programs that collect logs.
    Json,
}

/// There is no such format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a log is `text` or `json`")]
pub struct NoSuchLogFormat;

impl LogFormat {
    pub const NAMES: [&'static str; 2] = [Self::Text.as_str(), Self::Json.as_str()];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl FromStr for LogFormat {
    type Err = NoSuchLogFormat;

    fn from_str(text: &str) -> Result<Self, NoSuchLogFormat> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(NoSuchLogFormat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_written_as_it_is_read() {
        for format in [LogFormat::Text, LogFormat::Json] {
            assert_eq!(format.as_str().parse(), Ok(format));
            let written = serde_json::to_value(format).unwrap();
            assert_eq!(written, format.as_str());
        }
        assert_eq!("JSON".parse::<LogFormat>(), Err(NoSuchLogFormat));
    }
}
