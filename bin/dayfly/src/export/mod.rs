//! `dayfly export`: carries the audit log, the events and the decisions about egress of all projects
//! to a file or a webhook.
//!
//! A page is delivered first and noted second, so that whatever ends in between is delivered again:
//! every entry at least once, in order. Nothing is ever skipped; what the server no longer has is told
//! as a gap.

pub(crate) mod args;
mod file;
mod lines;
mod place;
mod webhook;

use std::io;
use std::time::Duration;

use dayfly_client::ClientError;

use crate::dispatch::Session;
use crate::export::args::ExportArgs;
use crate::export::file::ExportFile;
use crate::export::lines::Page;
use crate::export::place::{Place, PlaceFile};
use crate::export::webhook::SignedWebhook;
use crate::failure::{CommandError, Subject};
use crate::printer::Printer;
use crate::{error_text, exit_status, signals};

/// Entries of each kind that are carried at once.
const PAGE: u64 = 100;
/// How long the server may keep a request that finds nothing.
const WAIT: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Where pages go.
enum Sink {
    File(ExportFile),
    Webhook(Box<SignedWebhook>),
}

impl Sink {
    fn of(args: &ExportArgs) -> Result<Self, CommandError> {
        match (&args.file, &args.webhook) {
            (Some(file), _) => Ok(Self::File(ExportFile::new(file))),
            (None, Some(url)) => {
                let webhook = SignedWebhook::new(url, args.secret_file.as_deref())?;
                Ok(Self::Webhook(Box::new(webhook)))
            }
            (None, None) => Err(CommandError::Usage {
                what: "nothing says where the export goes".to_owned(),
                hint: "give --file FILE, or --webhook URL",
            }),
        }
    }

    async fn deliver(&self, lines: &[u8]) -> Result<(), CommandError> {
        match self {
            Self::File(file) => file.append(lines),
            Self::Webhook(webhook) => webhook.deliver(lines).await,
        }
    }
}

pub(crate) async fn export(session: &Session<'_>, args: &ExportArgs) -> Result<u8, CommandError> {
    let carrier = Carrier {
        session,
        sink: Sink::of(args)?,
        place: PlaceFile::open(&args.place()?)?,
        patience: Patience {
            printer: session.printer,
            is_once: args.once,
        },
    };
    signals::until_left(carrier.run()).await
}

struct Carrier<'a> {
    session: &'a Session<'a>,
    sink: Sink,
    place: PlaceFile,
    patience: Patience<'a>,
}

impl Carrier<'_> {
    async fn run(mut self) -> Result<u8, CommandError> {
        let patience = self.patience;
        let mut carried = 0;
        loop {
            let page = self.read().await?;
            if page.count > 0 {
                patience
                    .insist(async || self.sink.deliver(&page.text).await)
                    .await?;
                patience.insist(async || self.place.note(&page.end)).await?;
                carried += page.count;
            } else if patience.is_once {
                let words = format!("{carried} lines are exported");
                patience.printer.note(&words);
                return Ok(exit_status::OK);
            }
        }
    }

    /// The next page, or that it is of another series than the one before.
    async fn read(&self) -> Result<Page, CommandError> {
        let noted = self.place.noted();
        let begin = noted.map(Place::numbers).unwrap_or_default();
        let wait = match self.patience.is_once {
            true => Duration::ZERO,
            false => WAIT,
        };
        let read = async || {
            let page = self.session.client.export(begin, PAGE, wait).await;
            page.map_err(|error| {
                CommandError::call("cannot read the export", error).about(Subject::Key)
            })
        };
        let page = self.patience.insist(read).await?;
        let lines = match noted {
            Some(noted) if noted.series != page.series => Page::of_reset(noted, &page.series),
            _ => Page::of(noted, &page),
        };
        let lines = lines.map_err(|error| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            CommandError::local("cannot understand the export", error)
        })?;
        // Otherwise an end would say that everything is there.
        if self.patience.is_once && lines.count == 0 && page.egress.is_none() {
            let why = io::Error::other("the host of the sandboxes does not respond");
            let what = "cannot read the decisions about egress";
            return Err(CommandError::local(what, why));
        }
        Ok(lines)
    }
}

/// How long something is tried again.
#[derive(Clone, Copy)]
struct Patience<'a> {
    printer: &'a Printer,
    is_once: bool,
}

impl Patience<'_> {
    /// Tries until it is done, or waiting cannot help.
    async fn insist<T>(
        self,
        mut attempt: impl AsyncFnMut() -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match attempt().await {
                Err(error) if !self.is_once && passes(&error) => error,
                outcome => return outcome,
            };
            let why = error_text::report(&error).error;
            self.printer
                .note(&format!("{why}; again in {} s", pause.as_secs()));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Whether waiting can help: a key that may not do this stays one.
fn passes(error: &CommandError) -> bool {
    let CommandError::Call {
        source: ClientError::Api(refusal),
        ..
    } = error
    else {
        return true;
    };
    refusal.status >= 500 || refusal.status == 429
}
