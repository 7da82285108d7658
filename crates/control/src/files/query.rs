//! Parameters of requests about files.

use dayfly_node_api::WritePlace;
use dayfly_types::limits::{DIRECTORY_DEPTH_MAX, DIRECTORY_ENTRIES_MAX, FILE_BYTES_MAX};
use utoipa::IntoParams;

use crate::http::error::ApiError;
use crate::http::parameter::{
    EntryName, Flag, ModeBits, Number, Since, SmallNumber, UserName, parameters,
};

const DEPTH_MAX: usize = DIRECTORY_DEPTH_MAX as usize;

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(crate) struct RangeParameters {
    /// One range of bytes, such as `bytes=0-499`, `bytes=500-` or `bytes=-500`. Anything else is
    /// as none.
    #[param(rename = "Range")]
    range: Option<String>,
}

parameters! {
    Query UserParameter {
        /// Whose permissions count. Default: `agent`.
        user: Option<UserName>,
    }

    /// How a file is written.
    Query WriteParameter {
        /// Adds to the file in place. Not together with `offset`.
        append: Flag,
        /// Writes into the file in place from this byte on, and leaves the rest of it.
        offset: Option<Number<0, FILE_BYTES_MAX>>,
        /// Permission bits in octal. An existing file keeps its own when absent; a new one has `0644`.
        mode: Option<ModeBits>,
        /// Whose permissions count. Default: `agent`.
        user: Option<UserName>,
    }

    /// Which part of a directory is wanted.
    Query ListParameter {
        /// How many levels; 1 is the directory alone. Links are never followed.
        depth: Option<SmallNumber<1, DEPTH_MAX>>,
        /// At most this many entries. Default: as many as a response holds.
        limit: Option<SmallNumber<1, DIRECTORY_ENTRIES_MAX>>,
        /// Only what comes behind this name: the `next_after` of the page before.
        after: Option<EntryName>,
        /// Whose permissions count. Default: `agent`.
        user: Option<UserName>,
    }

    /// Whether what is below counts, too.
    Query RecursiveParameter {
        /// Also everything below. Default: false.
        recursive: Flag,
        /// Whose permissions count. Default: `agent`.
        user: Option<UserName>,
    }

    /// From when on changes count.
    Query SinceParameter {
        /// `create`, or the id or name of a snapshot of this sandbox. Default: `create`.
        since: Since,
    }
}

impl WriteParameter {
    /// Where the bytes go.
    pub(crate) fn place(&self) -> Result<WritePlace, ApiError> {
        match (self.append, self.offset) {
            (false, None) => Ok(WritePlace::Whole),
            (true, None) => Ok(WritePlace::End),
            (false, Some(offset)) => Ok(WritePlace::At(offset)),
            (true, Some(_)) => {
                let message = "`append` and `offset` exclude each other";
                Err(ApiError::invalid(message))
            }
        }
    }
}

impl ListParameter {
    /// At most how many entries.
    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(DIRECTORY_ENTRIES_MAX)
    }

    /// How many levels.
    pub(crate) fn depth(&self) -> u32 {
        let depth = self.depth.unwrap_or(1);
        u32::try_from(depth).unwrap_or(DIRECTORY_DEPTH_MAX)
    }
}
