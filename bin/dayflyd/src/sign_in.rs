//! The setting that lets people sign in.

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

/// The settings with what their file holds. A file that cannot be read keeps everybody out, so it is
/// said at once.
///
/// # Errors
/// Which file, and why.
pub(crate) fn with_files(settings: SignInSettings) -> Result<SignInConfig> {
    let authority = settings.authority.as_ref().map(|path| {
        let named = || format!("sign_in: cannot read the authority {}", path.display());
        let size = std::fs::metadata(path).with_context(named)?.len();
        ensure!(size <= AUTHORITY_BYTES_MAX, "{}: it is too long", named());
        std::fs::read(path).with_context(named)
    });
    let authority = authority.transpose()?;
    Ok(SignInConfig {
        settings,
        authority,
    })
}
