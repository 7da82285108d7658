//! The files of the spool: lines in the order of their numbers.
//!
//! A file is named after its series and the first number in it, `SERIES.00000000000000000001`. So
//! a series goes with its files, and numbers go on behind a file in which nothing is written yet.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use dayfly_host::files::{make_directory_durable, sync, sync_directory};
use dayfly_node_api::{EgressDecision, EgressDecisionPage};
use dayfly_types::limits::{EGRESS_SPOOL_FILE_BYTES_MAX, EGRESS_SPOOL_FILES_MAX};
use serde::{Deserialize, Serialize};

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
const NUMBER_DIGITS: usize = 20;
/// A file is full before a packet of records makes it this large; more is damage.
const READ_BYTES_MAX: u64 = 2 * EGRESS_SPOOL_FILE_BYTES_MAX;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Decision(Box<EgressDecision>),
    /// So many decisions up to this number are gone for good.
    Lost {
        number: u64,
        count: u64,
    },
}

impl Line {
    const fn number(&self) -> u64 {
        match self {
            Self::Decision(decision) => decision.number,
            Self::Lost { number, .. } => *number,
        }
    }
}

/// The files, and the end that is written to.
#[derive(Debug)]
pub(super) struct SpoolFiles {
    view: SpoolView,
    newest: File,
    /// A write failed, and may have left a part of itself.
    is_torn: bool,
}

/// Which lines there are at one moment. They can be read without a lock.
#[derive(Debug, Clone)]
pub(super) struct SpoolView {
    directory: PathBuf,
    series: String,
    /// The first number of each file, oldest first. There is always one.
    firsts: VecDeque<u64>,
    /// Bytes of whole lines in the newest file.
    length: u64,
    /// The last number that is written.
    pub(super) last: u64,
}

impl SpoolFiles {
    /// Takes up what is there. Files that are no whole series begin a new one.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        make_directory_durable(directory, DIRECTORY_MODE)?;
        let found = list(directory)?;
        if let Some(view) = SpoolView::find(directory, &found)? {
            let path = view.path(view.newest());
            let newest = OpenOptions::new().append(true).open(path)?;
            // A torn line was never handed out.
            newest.set_len(view.length)?;
            return Ok(Self {
                view,
                newest,
                is_torn: false,
            });
        }
        if !found.is_empty() {
            tracing::error!("the egress decisions of this node are damaged; they begin anew");
        }
        // The newest last: whoever is ended in between finds the damage again.
        for (first, series) in &found {
            fs::remove_file(directory.join(name(series, *first)))?;
        }
        Self::begin(directory)
    }

    fn begin(directory: &Path) -> io::Result<Self> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let view = SpoolView {
            directory: directory.to_owned(),
            series: hex::encode(random),
            firsts: VecDeque::from([1]),
            length: 0,
            last: 0,
        };
        let newest = make_file(&view.path(1))?;
        sync_directory(directory)?;
        Ok(Self {
            view,
            newest,
            is_torn: false,
        })
    }

    /// Which lines there are now.
    pub(super) const fn view(&self) -> &SpoolView {
        &self.view
    }

    /// Numbers decisions and writes them, behind a line for those that were lost before. All or
    /// nothing.
    pub(super) fn append(&mut self, lost: u64, decisions: Vec<EgressDecision>) -> io::Result<()> {
        let mut number = self.view.last;
        let mut lines = Vec::new();
        if lost > 0 {
            number = number.saturating_add(lost);
            write_line(
                &mut lines,
                &Line::Lost {
                    number,
                    count: lost,
                },
            )?;
        }
        for mut decision in decisions {
            number = number.saturating_add(1);
            decision.number = number;
            write_line(&mut lines, &Line::Decision(Box::new(decision)))?;
        }
        let length = self.view.length + lines.len() as u64;
        if self.view.length > 0 && length > EGRESS_SPOOL_FILE_BYTES_MAX {
            self.turn()?;
        }
        self.write(&lines)?;
        self.view.last = number;
        Ok(())
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.newest.set_len(self.view.length)?;
        }
        self.is_torn = true;
        self.newest.write_all(lines)?;
        self.is_torn = false;
        self.view.length += lines.len() as u64;
        Ok(())
    }

    /// As a write leaves it that failed in the middle.
    #[cfg(test)]
    pub(super) const fn tear(&mut self) {
        self.is_torn = true;
    }

    /// Begins another file, and removes the oldest when there are too many.
    fn turn(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.newest.set_len(self.view.length)?;
        }
        let first = self.view.last + 1;
        self.newest = make_file(&self.view.path(first))?;
        // From here on, whatever fails: its name says where the numbers go on.
        self.is_torn = false;
        self.view.length = 0;
        self.view.firsts.push_back(first);
        sync_directory(&self.view.directory)?;
        while self.view.firsts.len() > EGRESS_SPOOL_FILES_MAX {
            let oldest = self.view.firsts.pop_front();
            // One that stays is found by the next start, and removed then.
            let removed = oldest.map(|oldest| fs::remove_file(self.view.path(oldest)));
            if let Some(Err(error)) = removed {
                tracing::warn!(%error, "an old file of egress decisions was not removed");
            }
        }
        Ok(())
    }
}

impl SpoolView {
    /// The series of these files, or none when they are not whole files of one.
    fn find(directory: &Path, found: &[(u64, String)]) -> io::Result<Option<Self>> {
        let series: BTreeSet<&String> = found.iter().map(|(_, series)| series).collect();
        let (Some(series), 1) = (series.first(), series.len()) else {
            return Ok(None);
        };
        let mut view = Self {
            directory: directory.to_owned(),
            series: (*series).clone(),
            firsts: found.iter().map(|(first, _)| *first).collect(),
            length: READ_BYTES_MAX,
            last: 0,
        };
        let text = view.text(view.newest(), READ_BYTES_MAX)?;
        let last = last_number(&text, view.newest());
        let (Some(last), true) = (last, (text.len() as u64) < READ_BYTES_MAX) else {
            return Ok(None);
        };
        let end = text.iter().rposition(|byte| *byte == b'\n');
        view.length = end.map_or(0, |at| at as u64 + 1);
        view.last = last;
        Ok(Some(view))
    }

    fn newest(&self) -> u64 {
        self.firsts.back().copied().unwrap_or(1)
    }

    fn path(&self, first: u64) -> PathBuf {
        self.directory.join(name(&self.series, first))
    }

    fn text(&self, first: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let file = File::open(self.path(first))?;
        // On disk before somebody has it: what the disk forgets, nobody was given.
        sync(&file)?;
        file.take(length).read_to_end(&mut text)?;
        Ok(text)
    }

    /// At most so many decisions behind a number. Blocks.
    pub(super) fn read(&self, after: u64, max: usize) -> io::Result<EgressDecisionPage> {
        let mut page = EgressDecisionPage {
            series: self.series.clone(),
            decisions: Vec::new(),
            through: after.min(self.last),
        };
        if after >= self.last {
            return Ok(page);
        }
        let behind = |first: &u64| *first <= after + 1;
        let begin = self.firsts.partition_point(behind).saturating_sub(1);
        for first in self.firsts.iter().skip(begin) {
            let length = match *first == self.newest() {
                true => self.length,
                false => READ_BYTES_MAX,
            };
            let text = match self.text(*first, length) {
                Ok(text) => text,
                // Removed for want of room a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let lines = text.split(|byte| *byte == b'\n');
            let lines = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok());
            for line in lines.filter(|line| line.number() > after) {
                if page.decisions.len() == max {
                    return Ok(page);
                }
                page.through = line.number();
                if let Line::Decision(decision) = line {
                    page.decisions.push(*decision);
                }
            }
        }
        page.through = self.last;
        Ok(page)
    }
}

/// The files of a spool, by their first number.
fn list(directory: &Path) -> io::Result<Vec<(u64, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let parts = name.to_str().and_then(|name| name.split_once('.'));
        let Some((series, number)) = parts else {
            continue;
        };
        if number.len() == NUMBER_DIGITS
            && let Ok(first) = number.parse()
        {
            found.push((first, series.to_owned()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn name(series: &str, first: u64) -> String {
    format!("{series}.{first:0NUMBER_DIGITS$}")
}

fn make_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true).mode(FILE_MODE);
    options.open(path)
}

fn write_line(lines: &mut Vec<u8>, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, line)?;
    lines.push(b'\n');
    Ok(())
}

/// The last number of a file that begins with `first`, or none when its whole lines are damaged.
fn last_number(text: &[u8], first: u64) -> Option<u64> {
    let whole = text.iter().rposition(|byte| *byte == b'\n');
    let mut last = first.checked_sub(1)?;
    let Some(whole) = whole else {
        return Some(last);
    };
    for line in text[..whole].split(|byte| *byte == b'\n') {
        let line: Line = serde_json::from_slice(line).ok()?;
        let next = match line {
            Line::Decision(_) => last.checked_add(1)?,
            Line::Lost { count, .. } => last.checked_add(count)?,
        };
        if line.number() != next {
            return None;
        }
        last = next;
    }
    Some(last)
}
