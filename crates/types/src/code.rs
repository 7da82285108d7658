//! The stable error codes of the public API. A code once released is never renamed.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $status:literal;)*) => {
        /// What went wrong, as a word that programs may match.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The HTTP status that goes with the code.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

codes! {
    /// The request does not fit the documented shape.
    InvalidRequest = "invalid_request", 400;
    /// No key, or a key that is not known.
    Unauthorized = "unauthorized", 401;
    /// The key may not do this.
    Forbidden = "forbidden", 403;
    /// An operator has suspended the project; the text says why.
    ProjectSuspended = "project_suspended", 403;
    /// No such object in this project.
    NotFound = "not_found", 404;
    /// No such path in the API.
    NoSuchRoute = "no_such_route", 404;
    /// The path exists, the method does not.
    MethodNotAllowed = "method_not_allowed", 405;
    /// The sandbox is in a state that does not allow this.
    WrongState = "wrong_state", 409;
    /// A volume is in use in a way that this excludes; the text says by whom.
    VolumeBusy = "volume_busy", 409;
    /// Something of that name exists already.
    AlreadyExists = "already_exists", 409;
    /// The snapshot is in use; the text says by whom.
    SnapshotInUse = "snapshot_in_use", 409;
    /// The snapshot's files are not those that were published. It was not restored.
    SnapshotCorrupt = "snapshot_corrupt", 409;
    /// A write to the sandbox's disk failed, so what it holds is in doubt. It was not captured.
    DiskDamaged = "disk_damaged", 409;
    /// The snapshot was made by an engine, agent or template that this node no longer has.
    SnapshotUnfit = "snapshot_unfit", 409;
    /// This node only emulates, and another project is on it already.
    EmulationNotShared = "emulation_not_shared", 409;
    /// The idempotency key was used with another request.
    IdempotencyConflict = "idempotency_conflict", 409;
    /// A body, a file or a list is over its limit.
    TooLarge = "too_large", 413;
    /// The media type is not the documented one.
    UnsupportedMediaType = "unsupported_media_type", 415;
    /// The file has none of the bytes that were asked for.
    RangeNotSatisfiable = "range_not_satisfiable", 416;
    /// Too many at once; the text says of what.
    TooMany = "too_many", 429;
    /// The project may not have more; the text says of what. Waiting does not help.
    QuotaExceeded = "quota_exceeded", 429;
    /// The project asks too fast.
    RateLimited = "rate_limited", 429;
    /// A fault of ours; the request id finds it in the log.
    Internal = "internal", 500;
    /// Not built yet.
    NotImplemented = "not_implemented", 501;
    /// The guest stopped responding or is gone.
    GuestUnavailable = "guest_unavailable", 502;
    /// Nothing in the sandbox listens on this port.
    NothingListens = "nothing_listens", 502;
    /// The node has no room. Nothing was created.
    NoCapacity = "no_capacity", 503;
    /// The template is still being baked. Nothing was created.
    TemplateBaking = "template_baking", 503;
    /// The template could not be baked.
    TemplateFailed = "template_failed", 503;
    /// The node process cannot be reached.
    NodeUnavailable = "node_unavailable", 503;
    /// The database is locked or full, or its disk fails. Ask again.
    StoreUnavailable = "store_unavailable", 503;
    /// The audit record takes no entries now, so keys and projects are left as they are.
    AuditUnavailable = "audit_unavailable", 503;
    /// The OpenID provider that people sign in with cannot be asked. Ask again.
    ProviderUnavailable = "provider_unavailable", 503;
    /// The command ran past its time limit.
    Timeout = "timeout", 504;
    /// The guest's disk is full.
    DiskFull = "disk_full", 507;
    /// The node's disk is full. Nothing was changed.
    StorageFull = "storage_full", 507;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_equal_serde() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(*code));
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{}\"", code.as_str()));
        }
    }
}
