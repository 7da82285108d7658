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

use dayfly_client::{ClientError, ExportNumbers};

use crate::dispatch::Session;
use crate::export::args::ExportArgs;
use crate::export::file::ExportFile;
use crate::export::lines::{Page, Rest};
use crate::export::place::{EgressPlace, Place, PlaceFile};
use crate::export::webhook::SignedWebhook;
use crate::failure::{CommandError, Subject};
use crate::printer::Printer;
use crate::{error_text, exit_status, signals};

/// Entries of each kind that are carried at once.
const PAGE: u64 = 100;
/// How long the server may keep a request that finds nothing.
const WAIT: Duration = Duration::from_secs(20);
/// The largest number that a server takes.
const NUMBER_MAX: u64 = i64::MAX.unsigned_abs();
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
        last_decision: None,
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
    /// How far an export that ends has to come: decisions may flow without end.
    last_decision: Option<EgressPlace>,
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
            }
            if patience.is_once && self.is_whole(&page).await? {
                let words = format!("{carried} lines are exported");
                patience.printer.note(&words);
                return Ok(exit_status::OK);
            }
        }
    }

    /// Whether this page was the last of what was there, for an export that ends.
    async fn is_whole(&mut self, page: &Page) -> Result<bool, CommandError> {
        let end = match (page.rest, &page.end.egress) {
            (Rest::Anything, _) => return Ok(false),
            (Rest::Nothing, _) => return Ok(true),
            // Otherwise an end would say that everything is there.
            (Rest::HiddenDecisions, _) => return Err(host_is_away()),
            (Rest::Decisions, _) if page.count == 0 => return Ok(true),
            (Rest::Decisions, None) => return Ok(false),
            (Rest::Decisions, Some(end)) => end,
        };
        let last = match self.last_decision.take() {
            Some(last) if last.series == end.series => last,
            _ => self.find_last_decision().await?,
        };
        let is_whole = last.series == end.series && last.number <= end.number;
        self.last_decision = Some(last);
        Ok(is_whole)
    }

    /// The last decision that the host has now: a page behind any number comes no further.
    async fn find_last_decision(&self) -> Result<EgressPlace, CommandError> {
        let noted = self.place.noted().map(Place::numbers).unwrap_or_default();
        let behind_all = ExportNumbers {
            egress: NUMBER_MAX,
            ..noted
        };
        let client = &self.session.client;
        let page = client.export(behind_all, 1, Duration::ZERO).await;
        let page = page.map_err(not_read)?;
        let egress = page.egress.told().ok_or_else(host_is_away)?;
        Ok(EgressPlace {
            series: egress.series.clone(),
            number: egress.through,
        })
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
            page.map_err(not_read)
        };
        let page = self.patience.insist(read).await?;
        let lines = match noted {
            Some(noted) if noted.series != page.series => Page::of_reset(noted, &page.series),
            _ => Page::of(noted, &page),
        };
        lines.map_err(|error| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            CommandError::local("cannot understand the export", error)
        })
    }
}

fn not_read(error: ClientError) -> CommandError {
    CommandError::call("cannot read the export", error).about(Subject::Key)
}

fn host_is_away() -> CommandError {
    let why = io::Error::other("the host of the sandboxes does not respond");
    CommandError::local("cannot read the decisions about egress", why)
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
