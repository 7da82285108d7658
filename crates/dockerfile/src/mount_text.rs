//! `RUN --mount`.

use crate::error::{LineProblem, excerpt};
use crate::expand::check;
use crate::instruction::{MountKind, MountText};
use crate::stage_text::tree;
use crate::step::{CacheSharing, MountFrom};
use crate::syntax::Surroundings;

/// Of a directory of a cache that says nothing else.
const CACHE_MODE: u32 = 0o755;

/// The fields of one mount; each is taken by whoever knows it.
struct Fields(Vec<(String, Option<String>)>);

pub(crate) fn read(text: &str, around: Surroundings<'_>) -> Result<MountText, LineProblem> {
    let field = |part: &str| match part.split_once('=') {
        Some((name, value)) => (name.to_ascii_lowercase(), Some(value.to_owned())),
        None => (part.to_ascii_lowercase(), None),
    };
    let mut fields = Fields(text.split(',').map(field).collect());
    let kind = fields.text(&["type"])?;
    let target = fields.text(&["target", "dst", "destination"])?;
    let kind = match kind.as_deref().unwrap_or("bind") {
        "cache" => cache(&mut fields)?,
        "tmpfs" => temporary(&mut fields)?,
        "bind" => bind(&mut fields, around)?,
        "secret" | "ssh" => {
            let instead = "no secret is given to a build; use a base that needs none";
            return Err(LineProblem::refused("a mount of a secret", instead));
        }
        other => {
            let instead = "use cache, bind or tmpfs";
            return Err(LineProblem::value("the type of a mount", other, instead));
        }
    };
    if let Some((name, _)) = fields.0.first() {
        let what = format!("the field {:?} of a mount of this type", excerpt(name));
        return Err(LineProblem::refused(what, "remove it"));
    }
    // Without one it is the directory that the command runs in.
    let target = target.unwrap_or_else(|| ".".to_owned());
    check(&target, around.style())?;
    match &kind {
        MountKind::Cache { id: Some(text), .. } | MountKind::Bind { source: text, .. } => {
            check(text, around.style())?;
        }
        MountKind::Cache { id: None, .. } | MountKind::Temporary { .. } => {}
    }
    Ok(MountText { kind, target })
}

fn cache(fields: &mut Fields) -> Result<MountKind, LineProblem> {
    let sharing = match fields.text(&["sharing"])?.as_deref() {
        None | Some("shared") => CacheSharing::Shared,
        Some("private") => CacheSharing::Private,
        Some("locked") => CacheSharing::Locked,
        Some(other) => {
            let instead = "use shared, private or locked";
            return Err(LineProblem::value("sharing", other, instead));
        }
    };
    let mode = match fields.text(&["mode"])? {
        Some(mode) => crate::copy_text::read_mode(&mode)?,
        None => CACHE_MODE,
    };
    Ok(MountKind::Cache {
        id: fields.text(&["id"])?,
        sharing,
        mode,
        uid: fields.number("uid")?.unwrap_or(0),
        gid: fields.number("gid")?.unwrap_or(0),
        read_only: !fields.writable(true)?,
    })
}

fn temporary(fields: &mut Fields) -> Result<MountKind, LineProblem> {
    let size = fields.text(&["size"])?;
    let size_bytes = size.map(|size| bytes(&size)).transpose()?;
    Ok(MountKind::Temporary { size_bytes })
}

fn bind(fields: &mut Fields, around: Surroundings<'_>) -> Result<MountKind, LineProblem> {
    let from = match fields.text(&["from"])? {
        Some(from) => tree(&from, around)?,
        None => MountFrom::Context,
    };
    Ok(MountKind::Bind {
        from,
        source: fields.text(&["source", "src"])?.unwrap_or_default(),
        writable: fields.writable(false)?,
    })
}

impl Fields {
    /// The value under any of the names.
    fn text(&mut self, names: &[&str]) -> Result<Option<String>, LineProblem> {
        let mut found = None;
        while let Some(at) = self
            .0
            .iter()
            .position(|(name, _)| names.contains(&name.as_str()))
        {
            let (name, value) = self.0.remove(at);
            let value = value.filter(|value| !value.is_empty());
            if found.is_some() || value.is_none() {
                let what = format!("a mount needs one value for {name}");
                return Err(LineProblem::invalid(what, "write NAME=VALUE, once"));
            }
            found = value;
        }
        Ok(found)
    }

    fn number(&mut self, name: &'static str) -> Result<Option<u32>, LineProblem> {
        let Some(text) = self.text(&[name])? else {
            return Ok(None);
        };
        let wrong = |_| LineProblem::value(name, &text, "write a number");
        text.parse().map(Some).map_err(wrong)
    }

    fn writable(&mut self, default: bool) -> Result<bool, LineProblem> {
        let mut writable = default;
        let names = ["ro", "readonly", "rw", "readwrite"];
        while let Some(at) = self
            .0
            .iter()
            .position(|(name, _)| names.contains(&name.as_str()))
        {
            let (name, value) = self.0.remove(at);
            let is_on = match value.as_deref() {
                None | Some("true" | "1") => true,
                Some("false" | "0") => false,
                Some(other) => {
                    let what = "the value of ro or rw";
                    return Err(LineProblem::value(what, other, "write true or false"));
                }
            };
            let is_for_writing = ["rw", "readwrite"].contains(&name.as_str());
            writable = is_on == is_for_writing;
        }
        Ok(writable)
    }
}

/// A size with its unit, as in `64m`. Units are powers of 1024.
fn bytes(text: &str) -> Result<u64, LineProblem> {
    let wrong = || LineProblem::value("the size", text, "write a number of bytes, or as in 64m");
    let lower = text.to_ascii_lowercase();
    let lower = lower.strip_suffix('b').unwrap_or(&lower);
    let lower = lower.strip_suffix('i').unwrap_or(lower);
    let units = [('k', 10), ('m', 20), ('g', 30)];
    let unit = units.iter().find(|(unit, _)| lower.ends_with(*unit));
    let (number, shift) = match unit {
        Some((unit, shift)) => (lower.trim_end_matches(*unit), *shift),
        None => (lower, 0),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}
