//! `dayfly export`: carries the audit log and the events of all projects to a file or a webhook.
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
use dayfly_client::api::ExportPage;

use crate::dispatch::Session;
use crate::export::args::ExportArgs;
use crate::export::file::ExportFile;
use crate::export::lines::Page;
use crate::export::place::{Place, PlaceFile};
use crate::export::webhook::SignedWebhook;
use crate::failure::{CommandError, Subject};
use crate::{exit_status, signals};

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
        is_once: args.once,
    };
    signals::until_left(carrier.run()).await
}

struct Carrier<'a> {
    session: &'a Session<'a>,
    sink: Sink,
    place: PlaceFile,
    is_once: bool,
}

impl Carrier<'_> {
    async fn run(mut self) -> Result<u8, CommandError> {
        let mut carried = 0;
        loop {
            let page = self.read().await?;
            if page.count > 0 {
                self.deliver(&page).await?;
                self.note(&page).await?;
                carried += page.count;
            } else if self.is_once {
                let words = format!("{carried} lines are exported");
                self.session.printer.note(&words);
                return Ok(exit_status::OK);
            }
        }
    }

    /// The next page. A server that is away is waited for; one that refuses is not.
    async fn read(&self) -> Result<Page, CommandError> {
        let noted = self.place.noted();
        let begin = noted.map(Place::numbers).unwrap_or_default();
        let wait = if self.is_once { Duration::ZERO } else { WAIT };
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.session.client.export(begin, PAGE, wait).await {
                Ok(page) => return lines_of(noted, &page),
                Err(error) => error,
            };
            let is_over = self.is_once || !passes(&error);
            let failed = CommandError::call("cannot read the export", error).about(Subject::Key);
            if is_over {
                return Err(failed);
            }
            self.pause(&mut pause, &failed).await;
        }
    }

    async fn deliver(&self, page: &Page) -> Result<(), CommandError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.sink.deliver(&page.text).await {
                Ok(()) => return Ok(()),
                Err(error) if self.is_once => return Err(error),
                Err(error) => self.pause(&mut pause, &error).await,
            }
        }
    }

    async fn note(&mut self, page: &Page) -> Result<(), CommandError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.place.note(&page.end) {
                Ok(()) => return Ok(()),
                Err(error) if self.is_once => return Err(error),
                Err(error) => self.pause(&mut pause, &error).await,
            }
        }
    }

    async fn pause(&self, pause: &mut Duration, why: &CommandError) {
        let words = format!("{}; again in {} s", chain(why), pause.as_secs());
        self.session.printer.note(&crate::text::visible(&words));
        tokio::time::sleep(*pause).await;
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }
}

/// What a page says, or that it is of another series than the one before.
fn lines_of(noted: Option<&Place>, page: &ExportPage) -> Result<Page, CommandError> {
    let lines = match noted {
        Some(noted) if noted.series != page.series => Page::of_reset(&page.series),
        _ => Page::of(noted, page),
    };
    lines.map_err(|error| {
        let error = io::Error::new(io::ErrorKind::InvalidData, error);
        CommandError::local("cannot understand the export", error)
    })
}

/// Whether waiting can help: a key that may not do this stays one.
fn passes(error: &ClientError) -> bool {
    let ClientError::Api(refusal) = error else {
        return true;
    };
    refusal.status >= 500 || refusal.status == 429
}

/// An error and what it comes from.
fn chain(error: &CommandError) -> String {
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        words.push_str(": ");
        words.push_str(&error.to_string());
        source = error.source();
    }
    words
}
