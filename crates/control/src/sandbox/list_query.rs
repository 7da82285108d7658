//! Which sandboxes a list is to have.

use crate::http::parameter::{Labels, Number, PageCursor, Text, parameters};
use crate::sandbox::list::Wanted;

parameters! {
    /// The query of a list.
    Query ListParameter {
        /// Only those in this state, such as `running` or `hibernated`.
        status: Option<Text<1, 128>>,
        /// Only those of this template.
        template: Option<Text<1, 128>>,
        /// Only those with all of these labels: a JSON object with text values, such as `{"task":"7"}`.
        metadata: Labels,
        /// At most this many, and `next_cursor` if there are more. Default: all.
        limit: Option<Number<1, 1000>>,
        /// `next_cursor` of the page before.
        cursor: PageCursor,
    }
}

impl From<ListParameter> for Wanted {
    fn from(given: ListParameter) -> Self {
        Self {
            status: given.status,
            template: given.template,
            metadata: given.metadata,
            after: given.cursor,
            limit: given.limit.and_then(|limit| usize::try_from(limit).ok()),
        }
    }
}
