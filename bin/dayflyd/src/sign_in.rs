//! The setting that lets people sign in.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use dayfly_control::{InvalidSignIn, SignInConfig, SignInSettings};

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
    let authority = settings.authority.as_deref().map(read).transpose()?;
    let config = SignInConfig {
        settings: settings.clone(),
        authority,
    };
    config.check().context("sign_in: authority")?;
    Ok(config)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let named = || format!("sign_in: cannot read the authority {}", path.display());
    let mut text = Vec::new();
    let file = File::open(path).with_context(named)?;
    let mut file = file.take(AUTHORITY_BYTES_MAX + 1);
    file.read_to_end(&mut text).with_context(named)?;
    let is_short = text.len() as u64 <= AUTHORITY_BYTES_MAX;
    ensure!(is_short, "{}: it is too long", named());
    Ok(text)
}
