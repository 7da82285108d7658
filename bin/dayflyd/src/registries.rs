//! The setting that names registries.

use std::ffi::OsStr;

use anyhow::{Context, Result, ensure};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use dayfly_snapshots::Registries;
use dayfly_types::limits::REGISTRIES_BYTES_MAX;

/// What is written on the command line, or made of the file's tables. Unlike what `clap` says by
/// itself, an error does not repeat the value: somebody may have written a password into it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegistriesParser;

impl TypedValueParser for RegistriesParser {
    type Value = Registries;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Registries, clap::Error> {
        parse(value).map_err(|error| {
            let text = format!("registry: {error:#}\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }
}

fn parse(value: &OsStr) -> Result<Registries> {
    let text = value.to_str().context("it is not UTF-8")?;
    ensure!(
        text.len() <= REGISTRIES_BYTES_MAX,
        "all registries together have at most {REGISTRIES_BYTES_MAX} bytes as JSON"
    );
    Ok(serde_json::from_str(text)?)
}

/// Refuses files that no image could be fetched with. A start does not look at them: a password
/// that is missing must not keep everything else from starting.
///
/// # Errors
/// Which file, and why.
pub(crate) fn check(registries: &Registries) -> Result<()> {
    let checked = registries.check_files();
    checked.context("registry")
}
