//! What somebody wants to have built, from the texts of a form.

use std::collections::BTreeMap;

use dayfly_api::NetworkWish;
use dayfly_types::limits::{DISK_MIB_MAX, DOCKERFILE_BYTES_MAX};

use super::form::BuildForm;
use super::port::UploadedContext;
use crate::input::{Invalid, quantity};
use crate::template::reference::{self, LATEST};

/// What PandaStack's clients wish for by themselves. Sandboxes have at least this much anyway.
const SIZE_MB_DEFAULT: u64 = 1024;
/// What a disk has that nobody said anything about.
const DISK_MIB_DEFAULT: u64 = 4096;
const MIB_OF_GIB: f64 = 1024.0;
const DESCRIPTION_CHARACTERS_MAX: usize = 1000;
const IMAGE_BYTES_MAX: usize = 1024;
const ARGUMENTS_MAX: usize = 256;
const TARGET_BYTES_MAX: usize = 128;
/// What PandaStack's clients can send and nothing here takes.
const KERNEL: &str = "kernel";
const ROOT_FILES: &str = "rootfs";
const FIELDS: [&str; 12] = [
    "name",
    "tag",
    "dockerfile",
    "image_ref",
    "size_mb",
    "cpu",
    "memory_mb",
    "target",
    "build_args",
    "network",
    "fresh",
    "description",
];

/// A build that is wanted. Every value is within its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct NewBuild {
    pub name: String,
    pub tag: String,
    pub description: String,
    pub dockerfile: String,
    /// The image that was asked for, if no Dockerfile was.
    pub image: Option<String>,
    pub target: Option<String>,
    pub arguments: BTreeMap<String, String>,
    pub memory_mb: Option<u64>,
    pub cpu: Option<u64>,
    /// What was wished for.
    pub size_mb: u64,
    /// What is asked for: nothing where the base has as much by itself.
    pub disk_gb: Option<f64>,
    pub network: Option<NetworkWish>,
    pub is_fresh: bool,
}

impl NewBuild {
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn parse(form: BuildForm) -> Result<(Self, UploadedContext), Invalid> {
        let mut texts = form.texts;
        if texts
            .remove(KERNEL)
            .is_some_and(|kernel| !kernel.is_empty())
        {
            let rule =
                "cannot be chosen: all machines of this server start the same one; leave it out";
            return Err(Invalid::field("kernel", rule));
        }
        let has_root_files = texts.contains_key(ROOT_FILES)
            || form
                .context
                .files
                .iter()
                .any(|file| file.path.as_str() == ROOT_FILES);
        if has_root_files && !texts.contains_key("dockerfile") {
            let rule = "is not taken: push the files as an image to a registry and give image_ref, or \
                        send a dockerfile with the files of its build context";
            return Err(Invalid::field("rootfs", rule));
        }
        check_names(&texts)?;
        let mut take = |name: &str| texts.remove(name).filter(|text| !text.is_empty());
        let name = take("name").ok_or_else(|| Invalid::field("name", "must be given"))?;
        reference::check_name("name", &name)?;
        let tag = take("tag").unwrap_or_else(|| LATEST.to_owned());
        reference::check_tag(&tag)?;
        let image = take("image_ref").map(image).transpose()?;
        let dockerfile = dockerfile(take("dockerfile"), image.as_deref())?;
        let memory_mb = number("memory_mb", take("memory_mb"))?;
        let cpu = number("cpu", take("cpu"))?;
        memory_mb.map(quantity::memory_mb).transpose()?;
        cpu.map(quantity::vcpus).transpose()?;
        let size_mb = number("size_mb", take("size_mb"))?.unwrap_or(SIZE_MB_DEFAULT);
        let new = Self {
            name,
            tag,
            description: bounded(
                "description",
                take("description"),
                DESCRIPTION_CHARACTERS_MAX,
            )?
            .unwrap_or_default(),
            dockerfile,
            image,
            target: bounded("target", take("target"), TARGET_BYTES_MAX)?,
            arguments: arguments(take("build_args"))?,
            memory_mb,
            cpu,
            size_mb,
            disk_gb: disk_gb(size_mb),
            network: network(take("network"))?,
            is_fresh: flag("fresh", take("fresh"))?,
        };
        Ok((new, form.context))
    }
}

fn check_names(texts: &BTreeMap<String, String>) -> Result<(), Invalid> {
    let Some(unknown) = texts.keys().find(|name| !FIELDS.contains(&name.as_str())) else {
        return Ok(());
    };
    let unknown: String = unknown.chars().take(64).collect();
    let rule = format!(
        "has the unknown field `{unknown}`; known here: {}; files need a file name",
        FIELDS.join(", ")
    );
    Err(Invalid::field("the form", rule))
}

fn dockerfile(text: Option<String>, image: Option<&str>) -> Result<String, Invalid> {
    match (text, image) {
        (Some(_), Some(_)) => {
            let rule = "and image_ref exclude each other: name the image behind FROM";
            Err(Invalid::field("dockerfile", rule))
        }
        (Some(text), None) if text.len() > DOCKERFILE_BYTES_MAX => Err(Invalid::TooLarge {
            what: "dockerfile",
            limit: DOCKERFILE_BYTES_MAX,
        }),
        (Some(text), None) => Ok(text),
        (None, Some(image)) => Ok(format!("FROM {image}\n")),
        (None, None) => Err(Invalid::field("dockerfile", "or image_ref must be given")),
    }
}

fn image(text: String) -> Result<String, Invalid> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./:@_-+".contains(&byte);
    if text.len() <= IMAGE_BYTES_MAX && text.bytes().all(is_plain) {
        return Ok(text);
    }
    let rule = "must be HOST/NAME:TAG or HOST/NAME@sha256:DIGEST";
    Err(Invalid::field("image_ref", rule))
}

fn number(field: &'static str, text: Option<String>) -> Result<Option<u64>, Invalid> {
    let Some(text) = text else {
        return Ok(None);
    };
    let is_plain = text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    let rule = "must be a whole number";
    number.map(Some).ok_or_else(|| Invalid::field(field, rule))
}

fn flag(field: &'static str, text: Option<String>) -> Result<bool, Invalid> {
    match text.as_deref() {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(_) => Err(Invalid::field(field, "must be true or false")),
    }
}

fn bounded(
    field: &'static str,
    text: Option<String>,
    most: usize,
) -> Result<Option<String>, Invalid> {
    if text
        .as_ref()
        .is_some_and(|text| text.chars().count() > most)
    {
        let rule = format!("must have at most {most} characters");
        return Err(Invalid::field(field, rule));
    }
    Ok(text)
}

fn arguments(text: Option<String>) -> Result<BTreeMap<String, String>, Invalid> {
    let Some(text) = text else {
        return Ok(BTreeMap::new());
    };
    let read: Option<BTreeMap<String, String>> = serde_json::from_str(&text).ok();
    let rule = format!("must be a JSON object of at most {ARGUMENTS_MAX} texts");
    let read = read.filter(|read| read.len() <= ARGUMENTS_MAX);
    read.ok_or_else(|| Invalid::field("build_args", rule))
}

/// The rules are read again when the first builder is made, by the same code as for any sandbox.
fn network(text: Option<String>) -> Result<Option<NetworkWish>, Invalid> {
    let Some(text) = text else {
        return Ok(None);
    };
    let read = serde_json::from_str(&text);
    read.map_err(|error| Invalid::field("network", format!("does not fit: {error}")))
}

/// A disk as it is asked for. What is wished for is no reason to fail: too little is what the base has,
/// too much is the most that there is.
fn disk_gb(size_mb: u64) -> Option<f64> {
    let megabytes = size_mb.min(DISK_MIB_MAX);
    let is_more = megabytes > DISK_MIB_DEFAULT;
    let megabytes = u32::try_from(megabytes).unwrap_or(u32::MAX);
    is_more.then(|| f64::from(megabytes) / MIB_OF_GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[(&str, &str)]) -> Result<NewBuild, Invalid> {
        let texts = texts
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let form = BuildForm {
            texts: texts.collect(),
            ..BuildForm::default()
        };
        NewBuild::parse(form).map(|(new, _)| new)
    }

    #[test]
    fn what_pandastack_sends_is_a_build() {
        let asked = [
            ("name", "web"),
            ("size_mb", "1024"),
            ("image_ref", "docker.io/library/busybox:1"),
        ];
        let new = parse(&asked).unwrap();
        assert_eq!(new.dockerfile, "FROM docker.io/library/busybox:1\n");
        assert_eq!((new.tag.as_str(), new.disk_gb), ("latest", None));
    }

    #[test]
    fn a_size_is_a_wish() {
        for (size, disk) in [("1", None), ("4096", None), ("8192", Some(8.0))] {
            let asked = [
                ("name", "a"),
                ("dockerfile", "FROM base"),
                ("size_mb", size),
            ];
            assert_eq!(parse(&asked).unwrap().disk_gb, disk, "{size}");
        }
        let asked = [
            ("name", "a"),
            ("dockerfile", "FROM base"),
            ("size_mb", "999999999"),
        ];
        assert_eq!(parse(&asked).unwrap().disk_gb, Some(1024.0));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_to_do() {
        let base = [("name", "a"), ("dockerfile", "FROM base")];
        assert!(parse(&base).is_ok());
        for (field, value, told) in [
            ("kernel", "vmlinux", "leave it out"),
            ("image_ref", "busybox", "exclude each other"),
            ("memory_mb", "1.5", "whole number"),
            ("memory_mb", "1", "between"),
            ("cpu", "1000", "between"),
            ("size_mb", "-1", "whole number"),
            ("tag", "A", "must be a tag"),
            ("fresh", "yes", "true or false"),
            ("build_args", "[]", "JSON object"),
            ("network", "{\"mode\":\"x\"}", "does not fit"),
            ("colour", "red", "unknown field `colour`"),
            ("name", "builds", "must not be one of"),
            ("name", "images", "must not be one of"),
            ("name", "build", "must not be one of"),
            ("name", "A", "not a name"),
        ] {
            let mut asked = base.to_vec();
            asked.retain(|(name, _)| *name != field);
            asked.push((field, value));
            let refused = parse(&asked).unwrap_err().to_string();
            assert!(refused.contains(told), "{field}: {refused}");
        }
        for (asked, told) in [
            (vec![("dockerfile", "FROM a")], "name must be given"),
            (vec![("name", "a")], "or image_ref must be given"),
            (vec![("name", "a"), ("rootfs", "x")], "image_ref"),
            (vec![("name", "a"), ("image_ref", "a\nRUN x")], "HOST/NAME"),
        ] {
            let refused = parse(&asked).unwrap_err().to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
