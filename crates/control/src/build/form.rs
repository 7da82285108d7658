//! The form that asks for a build: texts, and the files of the build context.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use axum::extract::Request;
use dayfly_types::limits::{
    BUILD_CONTEXT_BYTES_MAX, BUILD_CONTEXT_FILES_MAX, BUILD_FIELD_BYTES_MAX, BUILD_MODES_BYTES_MAX,
    BUILD_UPLOAD_DEADLINE, JSON_BODY_BYTES_MAX,
};
use dayfly_types::{ContextPath, InvalidContextPath};
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::multipart::{Part, PartError, Parts};
use super::port::{UploadedContext, UploadedFile};
use super::spool::Spool;
use crate::http::parameter::decode;

/// The field with the modes of files.
pub(super) const MODES: &str = "context.modes";
const URL_ENCODED: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";
const MODE_DEFAULT: u32 = 0o644;
const MODE_BITS: u32 = 0o7777;
const NAME_SHOWN_CHARACTERS: usize = 64;
/// More than there are names for.
const FIELDS_MAX: usize = 32;

/// What a form says.
#[derive(Debug, Default)]
pub(crate) struct BuildForm {
    pub(crate) texts: BTreeMap<String, String>,
    pub(crate) context: UploadedContext,
}

/// Why a form is not taken. Nothing was kept of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FormError {
    #[error("the body must be {MULTIPART} or {URL_ENCODED}")]
    MediaType,
    #[error("the form took too long to arrive")]
    TooSlow,
    #[error("the form broke off")]
    BrokenOff(#[source] axum::Error),
    #[error("{what} may have at most {limit} {unit}")]
    TooLarge {
        what: String,
        limit: u64,
        unit: &'static str,
    },
    #[error("{0}")]
    Unfit(String),
    #[error("cannot keep the build context")]
    Keep(#[source] std::io::Error),
}

impl From<PartError> for FormError {
    fn from(error: PartError) -> Self {
        match error {
            PartError::Body(error) => Self::BrokenOff(error),
            PartError::HeadTooLong | PartError::Form(_) => Self::Unfit(error.to_string()),
        }
    }
}

impl From<InvalidContextPath> for FormError {
    fn from(error: InvalidContextPath) -> Self {
        Self::Unfit(error.to_string())
    }
}

/// Reads a form. Files go to a file without a name, in `directory`.
///
/// # Errors
/// [`FormError`].
pub(crate) async fn read(request: Request, directory: &Path) -> Result<BuildForm, FormError> {
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().to_owned();
    let media_type = kind.split(';').next().unwrap_or_default().trim();
    let reading = async {
        if media_type.eq_ignore_ascii_case(URL_ENCODED) {
            return url_encoded(request).await;
        }
        if !media_type.eq_ignore_ascii_case(MULTIPART) {
            return Err(FormError::MediaType);
        }
        let boundary = multer::parse_boundary(&kind)
            .map_err(|_| FormError::Unfit("the media type names no boundary".to_owned()))?;
        let parts = Parts::new(request.into_body(), boundary);
        Reading::new(directory).read(parts).await
    };
    let read = tokio::time::timeout(BUILD_UPLOAD_DEADLINE, reading).await;
    read.unwrap_or(Err(FormError::TooSlow))
}

async fn url_encoded(request: Request) -> Result<BuildForm, FormError> {
    let read = Limited::new(request.into_body(), JSON_BODY_BYTES_MAX).collect();
    let bytes = match read.await {
        Ok(read) => read.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(FormError::TooLarge {
                what: "a form without files".to_owned(),
                limit: count(JSON_BODY_BYTES_MAX),
                unit: "bytes",
            });
        }
        Err(error) => return Err(FormError::BrokenOff(axum::Error::new(error))),
    };
    let unfit = || FormError::Unfit("the form is not percent-encoded UTF-8".to_owned());
    let text = std::str::from_utf8(&bytes).map_err(|_| unfit())?;
    let mut form = BuildForm::default();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name).ok_or_else(unfit)?, decode(value));
        let value = value.ok_or_else(unfit)?;
        if value.len() > BUILD_FIELD_BYTES_MAX {
            return Err(too_long(&name));
        }
        if form.texts.insert(name.clone(), value).is_some() {
            return Err(twice(&name));
        }
    }
    Ok(form)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn shown(name: &str) -> String {
    name.chars().take(NAME_SHOWN_CHARACTERS).collect()
}

fn too_long(name: &str) -> FormError {
    FormError::TooLarge {
        what: format!("`{}`", shown(name)),
        limit: count(BUILD_FIELD_BYTES_MAX),
        unit: "bytes",
    }
}

fn twice(name: &str) -> FormError {
    FormError::Unfit(format!("`{}` is in the form twice", shown(name)))
}

/// A form that is being read.
struct Reading {
    texts: BTreeMap<String, String>,
    files: Vec<UploadedFile>,
    paths: BTreeSet<ContextPath>,
    spool: Spool,
}

impl Reading {
    fn new(directory: &Path) -> Self {
        Self {
            texts: BTreeMap::new(),
            files: Vec::new(),
            paths: BTreeSet::new(),
            spool: Spool::new(directory),
        }
    }

    async fn read(mut self, mut parts: Parts) -> Result<BuildForm, FormError> {
        while let Some(part) = parts.next().await? {
            let Some(name) = part.name().map(str::to_owned) else {
                let text = "a part of the form has no name".to_owned();
                return Err(FormError::Unfit(text));
            };
            if part.has_file_name() {
                self.file(&name, part).await?;
            } else {
                self.text(name, part).await?;
            }
        }
        if let Some(modes) = self.texts.remove(MODES) {
            self.set_modes(&modes)?;
        }
        self.check_directories()?;
        let content = self.spool.finish().await.map_err(FormError::Keep)?;
        let context = UploadedContext {
            content,
            files: self.files,
        };
        Ok(BuildForm {
            texts: self.texts,
            context,
        })
    }

    async fn text(&mut self, name: String, mut part: Part) -> Result<(), FormError> {
        let most = match name.as_str() {
            MODES => BUILD_MODES_BYTES_MAX,
            _ => BUILD_FIELD_BYTES_MAX,
        };
        // Texts are few: whoever sends many sends something else.
        if self.texts.len() >= FIELDS_MAX {
            let text = format!("the form has more than {FIELDS_MAX} texts");
            return Err(FormError::Unfit(text));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = part.next().await? {
            if bytes.len() + piece.len() > most {
                return Err(too_long(&name));
            }
            bytes.extend_from_slice(&piece);
        }
        let text = String::from_utf8(bytes);
        let unfit = |_| FormError::Unfit(format!("`{}` is not UTF-8", shown(&name)));
        let text = text.map_err(unfit)?;
        if self.texts.insert(name.clone(), text).is_some() {
            return Err(twice(&name));
        }
        Ok(())
    }

    async fn file(&mut self, name: &str, mut part: Part) -> Result<(), FormError> {
        let path = ContextPath::parse(name)?;
        if self.files.len() >= BUILD_CONTEXT_FILES_MAX {
            return Err(FormError::TooLarge {
                what: "a build context".to_owned(),
                limit: count(BUILD_CONTEXT_FILES_MAX),
                unit: "files",
            });
        }
        if !self.paths.insert(path.clone()) {
            return Err(twice(name));
        }
        let offset = self.spool.length();
        while let Some(piece) = part.next().await? {
            if self.spool.length() + count(piece.len()) > BUILD_CONTEXT_BYTES_MAX {
                return Err(FormError::TooLarge {
                    what: "all files of a build context together".to_owned(),
                    limit: BUILD_CONTEXT_BYTES_MAX,
                    unit: "bytes; leave some out, or build where the files are, with \
                           `dayfly template build`",
                });
            }
            self.spool.push(&piece).await.map_err(FormError::Keep)?;
        }
        self.files.push(UploadedFile {
            path,
            offset,
            length: self.spool.length() - offset,
            mode: MODE_DEFAULT,
        });
        Ok(())
    }

    fn set_modes(&mut self, text: &str) -> Result<(), FormError> {
        let unfit = || {
            let rule = "must be a JSON object of paths with octal modes, such as \
                        {\"run.sh\": \"755\"}";
            FormError::Unfit(format!("`{MODES}` {rule}"))
        };
        let given: BTreeMap<String, String> = serde_json::from_str(text).map_err(|_| unfit())?;
        let mut modes = BTreeMap::new();
        for (path, mode) in given {
            let mode = u32::from_str_radix(&mode, 8).ok();
            let mode = mode.filter(|mode| *mode <= MODE_BITS).ok_or_else(unfit)?;
            modes.insert(ContextPath::parse(&path)?, mode);
        }
        for file in &mut self.files {
            if let Some(mode) = modes.remove(&file.path) {
                file.mode = mode;
            }
        }
        match modes.into_keys().next() {
            None => Ok(()),
            Some(path) => Err(FormError::Unfit(format!(
                "`{MODES}` names {}, which is no file of the form",
                shown(path.as_str())
            ))),
        }
    }

    /// Refuses a file that another one is in.
    fn check_directories(&self) -> Result<(), FormError> {
        for file in &self.files {
            for directory in file.path.directories() {
                let is_file = ContextPath::parse(directory)
                    .is_ok_and(|directory| self.paths.contains(&directory));
                if is_file {
                    let text = format!("{} is a file and a directory", shown(directory));
                    return Err(FormError::Unfit(text));
                }
            }
        }
        Ok(())
    }
}
