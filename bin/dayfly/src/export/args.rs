//! The command line of `dayfly export`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::failure::CommandError;

pub(crate) const EXPORT_HELP: &str = "\
One JSON object per line, each kind in order, every entry at least once: `kind` is audit, event, egress,
or gap for what was lost or removed before it was read. Needs the key of an operator.

Examples:
  dayfly export --file /var/log/dayfly/export.jsonl
  dayfly export --webhook https://collector.example/dayfly --secret-file secret --state export.state";

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// Append to this file. It may be moved away at any time, a new one is made.
    #[arg(long, value_name = "FILE", conflicts_with = "webhook")]
    pub(crate) file: Option<PathBuf>,
    /// Send to this address, with POST.
    #[arg(long, value_name = "URL", requires = "secret_file", requires = "state")]
    pub(crate) webhook: Option<String>,
    /// The secret that signs what is sent to the webhook.
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Where to note how far the export has come [default: FILE.state].
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// End when there is nothing more, instead of waiting for it.
    #[arg(long)]
    pub(crate) once: bool,
}

impl ExportArgs {
    /// Where it notes how far it has come.
    pub(super) fn place(&self) -> Result<PathBuf, CommandError> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let Some(file) = &self.file else {
            return Err(CommandError::Usage {
                what: "nothing says where to note how far the export has come".to_owned(),
                hint: "give --state FILE",
            });
        };
        let mut name = OsString::from(file);
        name.push(".state");
        Ok(name.into())
    }
}
