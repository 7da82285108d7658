//! The setting that lets people sign in.

use anyhow::{Context, Result, bail};
use dayfly_control::{InvalidSignIn, SignInConfig, SignInSettings};

use crate::bounded_file;

/// Certificates of an authority are a handful.
const AUTHORITY_BYTES_MAX: u64 = 1 << 20;

/// What is written on the command line, or made of the file's table.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(text: &str) -> Result<SignInSettings> {
    let parsed = SignInSettings::parse(text);
    // What `clap` shows is one line.
    if let Err(InvalidSignIn::Unreadable(source)) = parsed {
        bail!("{source}");
    }
    Ok(parsed?)
}

/// Refuses what nobody could sign in with.
///
/// # Errors
/// Which file, and why.
pub(crate) fn check(settings: Option<&SignInSettings>) -> Result<()> {
    settings.map_or(Ok(()), |settings| with_files(settings).map(|_| ()))
}

/// What people sign in with, as it is now. An authority that is gone since keeps people from signing
/// in, and must keep nobody else from anything.
pub(crate) fn usable(settings: Option<&SignInSettings>) -> Option<SignInConfig> {
    let config = with_files(settings?);
    let log = |error: &anyhow::Error| {
        let error = format!("{error:#}");
        tracing::error!(error, "nobody can sign in until the next start");
    };
    config.inspect_err(log).ok()
}

fn with_files(settings: &SignInSettings) -> Result<SignInConfig> {
    let authority = settings.authority.as_deref();
    let authority = authority.map(|path| bounded_file::read(path, AUTHORITY_BYTES_MAX));
    let authority = authority.transpose().context("sign_in: authority")?;
    let config = SignInConfig {
        settings: settings.clone(),
        authority,
    };
    config.check().context("sign_in: authority")?;
    Ok(config)
}
