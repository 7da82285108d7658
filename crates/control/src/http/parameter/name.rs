//! Names of things in a path, and what else has a form of its own.

use std::collections::BTreeMap;

use dayfly_api::Hint;
use dayfly_node_api::ChangesSince;
use dayfly_types::{ErrorCode, ExecId, InvalidId, SandboxId, SnapshotId, TemplateName, VolumeName};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
use utoipa::openapi::{Object, ObjectBuilder};

use super::scalar::text_like;
use super::{Parameter, SmallNumber};
use crate::exec::spec::check_user;
use crate::files::path::{AbsolutePath, PATH_CHARACTERS_MAX};
use crate::files::spec;
use crate::gateway::parse_port;
use crate::http::audit_read::PageBegin;
use crate::http::error::ApiError;
use crate::sandbox::metadata;
use crate::store::{AuditPlace, Cursor, HourPlace, KeyPlace};

const ID: &str = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$";
const CURSOR_BYTES_MAX: usize = 128;

/// Kinds of text: what a handler gets of one, how it looks, how it is read, and what it is when
/// it is not there, unless it must be.
macro_rules! kinds {
    ($(
        $(#[doc = $about:literal])*
        $kind:ident -> $value:ty = $look:expr, $parse:expr $(, or $absent:expr)?;
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug)]
        pub(crate) enum $kind {}

        impl Parameter for $kind {
            type Value = $value;

            fn look() -> Object {
                $look
            }

            fn parse(name: &str, text: &str) -> Result<$value, ApiError> {
                let parse: fn(&str, &str) -> Result<$value, ApiError> = $parse;
                parse(name, text)
            }

            $(
                const IS_REQUIRED: bool = false;

                fn absent(_: &str) -> Result<$value, ApiError> {
                    Ok($absent)
                }
            )?
        }
    )*};
}

/// Things that have a name: one that cannot be a name is the name of nothing.
macro_rules! names {
    ($($name:ident $thing:literal, $look:expr;)*) => {$(
        impl Parameter for $name {
            type Value = Self;

            fn look() -> Object {
                $look
            }

            fn parse(_: &str, text: &str) -> Result<Self, ApiError> {
                Self::parse(text).map_err(nothing($thing))
            }
        }
    )*};
}

names! {
    SandboxId "sandbox", text_like(ID);
    SnapshotId "snapshot", text_like(ID);
    VolumeName "volume", text_like(ID);
    ExecId "exec", text_like(ID);
    TemplateName "template", ObjectBuilder::from(text_like("^[a-z0-9](\\.?[a-z0-9_-])*\\.?$"))
        .max_length(Some(64))
        .build();
}

kinds! {
    /// A context has a name of the same kind as an exec.
    ContextName -> ExecId = text_like(ID), |_, text| ExecId::parse(text).map_err(nothing("context"));
    /// A sandbox by which a list is narrowed: a text that is no id is a mistake, not an empty list.
    OfSandbox -> SandboxId = text_like(ID), |name, text| SandboxId::parse(text)
        .map_err(|error| ApiError::invalid(format!("`{name}` is not an id: {error}")));
    /// A port of a sandbox.
    Port -> u16 = SmallNumber::<1, 65_535>::look(), |_, text| parse_port(text)
        .ok_or_else(|| ApiError::new(ErrorCode::NotFound, "a port is a number from 1 to 65535"));
    /// A tag of a template; whether there is such a one is found out by looking.
    TagName -> String = text_like("^[a-z0-9][a-z0-9._-]{0,49}$"), |_, text| Ok(text.to_owned());
    /// A version of a template, by its id or a tag.
    VersionName -> String = text_like("^[a-z0-9][a-z0-9._-]{0,49}$"), |_, text| Ok(text.to_owned());
    /// A build; whether there is such a one is found out by looking.
    BuildName -> String = text_like("^[a-z0-9-]{1,64}$"), |_, text| Ok(text.to_owned());
    /// A link of a port; whether there is such a one is found out by looking.
    LinkName -> String = text_like("^[a-z0-9-]{1,50}$"), |_, text| Ok(text.to_owned());
    /// What a key begins with.
    KeyPrefix -> String = text_like("^[a-z0-9_]{1,32}$"), |_, text| Ok(text.to_owned());
    /// A project, as an operator names it.
    ProjectName -> String = text_like("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"),
        |_, text| Ok(text.to_owned());

    /// A file or directory of a guest.
    PathText -> AbsolutePath = path_text(), |_, text| Ok(AbsolutePath::parse(text)?);
    /// The name of an entry of a directory, behind which a page begins.
    EntryName -> String = path_text(), entry_name;
    /// A user of the guest.
    UserName -> String = text_like("^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$"),
        |_, text| Ok(check_user(text).map(|()| text.to_owned())?);
    /// Permission bits, in octal.
    ModeBits -> u32 = text_like("^[0-7]{3,4}$"), |_, text| Ok(spec::mode_bits(text)?);
    /// From when on changes count.
    Since -> ChangesSince = text_like(ID), |_, text| Ok(spec::since(text)?),
        or ChangesSince::Create;

    /// Labels that something must have.
    Labels -> BTreeMap<String, String> = Object::with_type(Type::String), labels,
        or BTreeMap::new();
    /// Where a page of sandboxes begins. An empty text is the first one.
    PageCursor -> Option<Cursor> = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(CURSOR_BYTES_MAX))
        .build(), page_cursor, or None;
    /// Where a page of keys begins.
    TokenCursor -> KeyPlace = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(CURSOR_BYTES_MAX))
        .build(), |name, text| KeyPlace::parse(text)
        .filter(|_| text.len() <= CURSOR_BYTES_MAX)
        .ok_or_else(|| ApiError::invalid(format!("`{name}` must be the `next_cursor` of a list")));
    /// A point in time.
    Moment -> OffsetDateTime = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .build(), moment;
    /// Where a page of the audit record begins.
    AuditCursor -> PageBegin = text_like("^[0-9]{1,19}(\\.[a-z0-9-]{1,63}\\.[0-9]{1,19})?$"),
        audit_cursor;
    /// Where a page of usage by hour begins.
    HourCursor -> HourPlace = text_like("^[0-9]{1,19}\\.[a-z0-9-]{1,63}$"), hour_cursor;
    /// The cursor of an event.
    EventCursor -> i64 = text_like("^[0-9]{1,18}$"), event_cursor;
    /// Which output of a command is wanted.
    OutputName -> Output = text_like("^(stdout|stderr)$"), |name, text| match text {
        "stdout" => Ok(Output::Stdout),
        "stderr" => Ok(Output::Stderr),
        _ => Err(ApiError::invalid(format!("`{name}` must be stdout or stderr"))),
    }, or Output::Stdout;
    /// Which outputs of commands are wanted.
    OutputNames -> Outputs = text_like("^(stdout|stderr|both)$"), |name, text| match text {
        "both" => Ok(Outputs { stdout: true, stderr: true }),
        "stdout" => Ok(Outputs { stdout: true, stderr: false }),
        "stderr" => Ok(Outputs { stdout: false, stderr: true }),
        _ => Err(ApiError::invalid(format!("`{name}` must be stdout, stderr or both"))),
    }, or Outputs { stdout: true, stderr: true };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Outputs {
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

fn nothing(thing: &str) -> impl FnOnce(InvalidId) -> ApiError {
    move |error| {
        let message = format!("there is no such {thing}: {error}");
        ApiError::new(ErrorCode::NotFound, message)
    }
}

fn path_text() -> Object {
    ObjectBuilder::from(text_like("^[^\\u0000]+$"))
        .min_length(Some(1))
        .max_length(Some(PATH_CHARACTERS_MAX))
        .build()
}

fn entry_name(name: &str, text: &str) -> Result<String, ApiError> {
    let length = text.chars().count();
    if !(1..=PATH_CHARACTERS_MAX).contains(&length) || text.contains('\0') {
        let message = format!("`{name}` is no name that a listing has");
        return Err(ApiError::invalid(message));
    }
    Ok(text.to_owned())
}

fn labels(name: &str, text: &str) -> Result<BTreeMap<String, String>, ApiError> {
    let labels = serde_json::from_str(text).map_err(|_| {
        ApiError::invalid(format!("`{name}` must be a JSON object with text values"))
            .hint(Hint::MetadataExample)
    })?;
    metadata::check(&labels)?;
    Ok(labels)
}

fn page_cursor(name: &str, text: &str) -> Result<Option<Cursor>, ApiError> {
    let wrong = || ApiError::invalid(format!("`{name}` must be the `next_cursor` of a list"));
    let cursor = (!text.is_empty()).then(|| Cursor::parse(text).ok_or_else(wrong));
    cursor.transpose()
}

fn moment(name: &str, text: &str) -> Result<OffsetDateTime, ApiError> {
    OffsetDateTime::parse(text, &Rfc3339).map_err(|_| {
        ApiError::invalid(format!("`{name}` must be a time as RFC 3339 has it"))
            .hint(Hint::TimeExample)
    })
}

fn audit_cursor(name: &str, text: &str) -> Result<PageBegin, ApiError> {
    let wrong = || ApiError::invalid(format!("`{name}` must be the `next_cursor` of a page"));
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(PageBegin::Number).map_err(|_| wrong());
    }
    let place = AuditPlace::parse(text).map(PageBegin::Place);
    place.ok_or_else(wrong)
}

fn hour_cursor(name: &str, text: &str) -> Result<HourPlace, ApiError> {
    let wrong = || ApiError::invalid(format!("`{name}` must be the `next_cursor` of a page"));
    HourPlace::parse(text).ok_or_else(wrong)
}

fn event_cursor(name: &str, text: &str) -> Result<i64, ApiError> {
    let is_number = text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| ApiError::invalid(format!("`{name}` must be the cursor of an event")))
}
