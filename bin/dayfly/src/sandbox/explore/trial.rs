//! The attempts of one exploration, some of them at once.

use std::collections::BTreeMap;

use dayfly_api::{Command, ExecExitEvent, ExecRequest};
use dayfly_client::{ClientError, FollowEvent};
use futures::StreamExt as _;
use serde::Serialize;

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::sandbox::args::ExploreArgs;
use crate::{error_text, text};

/// What is kept of each stream of a command: its end, where a score is.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// What a message quotes of a line.
const QUOTED_CHARACTERS_MAX: usize = 200;

/// What became of one candidate.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Another one was good enough before.
    Skipped,
    /// It has no score: it, or the score command, was lost or ran too long, or gave no number.
    Failed {
        error: String,
    },
    Scored {
        result: Ran,
        score: f64,
    },
}

/// A command that ended.
#[derive(Debug, Default, Serialize)]
pub(super) struct Ran {
    exit_code: i32,
    /// exited, signaled, out_of_memory, limit_exceeded or killed.
    reason: String,
    /// The end of it, when it is long.
    stdout: String,
    stderr: String,
    truncated: bool,
}

/// Why a candidate has no score.
#[derive(Debug, thiserror::Error)]
enum NoScore {
    #[error(transparent)]
    Call(#[from] ClientError),
    #[error("the command ended without a status")]
    NoStatus,
    #[error("the command ran past its time limit")]
    TimedOut,
    #[error("the score command ended with status {exit_code}: {stderr}")]
    ScoreFailed { exit_code: i32, stderr: String },
    #[error("the last line of the score command's output is no number: {line:?}")]
    NoNumber { line: String },
}

pub(super) struct Trial<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) args: &'a ExploreArgs,
    pub(super) candidates: &'a [String],
}

impl Trial<'_> {
    /// Tries each candidate in its child. Once a score is good enough, none begins any more and none
    /// is waited for.
    pub(super) async fn run(&self, children: &[String]) -> Vec<Outcome> {
        let pairs = children.iter().zip(self.candidates).enumerate();
        let attempts = pairs.map(async |(number, (child, candidate))| {
            (number, candidate, self.attempt(child, candidate).await)
        });
        let mut ended = futures::stream::iter(attempts).buffer_unordered(self.args.parallel);
        let mut outcomes = BTreeMap::new();
        while let Some((number, candidate, outcome)) = ended.next().await {
            self.tell(candidate, &outcome);
            let is_enough = self.is_enough(&outcome);
            outcomes.insert(number, outcome);
            if is_enough {
                break;
            }
        }
        let numbers = 0..self.candidates.len();
        numbers
            .map(|number| outcomes.remove(&number).unwrap_or(Outcome::Skipped))
            .collect()
    }

    fn is_enough(&self, outcome: &Outcome) -> bool {
        match (outcome, self.args.stop_at) {
            (Outcome::Scored { score, .. }, Some(enough)) => *score >= enough,
            (Outcome::Scored { .. } | Outcome::Failed { .. } | Outcome::Skipped, _) => false,
        }
    }

    fn tell(&self, candidate: &str, outcome: &Outcome) {
        let candidate = text::visible(candidate);
        match outcome {
            Outcome::Scored { score, .. } => {
                let line = format!("score {score}: {candidate}");
                self.session.printer.note(&line);
            }
            Outcome::Failed { error } if !self.session.printer.is_json() => {
                let line = format!("no score: {candidate}: {error}");
                self.session.printer.warning(&line);
            }
            Outcome::Failed { .. } | Outcome::Skipped => {}
        }
    }

    async fn attempt(&self, child: &str, candidate: &str) -> Outcome {
        match self.scored(child, candidate).await {
            Ok((result, score)) => Outcome::Scored { result, score },
            Err(NoScore::Call(source)) => {
                let error = CommandError::call(format!("lost the attempt in {child}"), source);
                let error = error_text::report(&error).error;
                Outcome::Failed { error }
            }
            Err(error) => Outcome::Failed {
                error: text::visible(&error.to_string()),
            },
        }
    }

    async fn scored(&self, child: &str, candidate: &str) -> Result<(Ran, f64), NoScore> {
        let result = self.command(child, candidate).await?;
        let score = match &self.args.score {
            Some(command) => score(&self.command(child, command).await?)?,
            // Success counts, nothing else does.
            None if result.exit_code == 0 => 1.0,
            None => 0.0,
        };
        Ok((result, score))
    }

    /// Runs a command to its end, over lost connections.
    async fn command(&self, child: &str, command: &str) -> Result<Ran, NoScore> {
        let request = ExecRequest {
            timeout_seconds: self.args.timeout.map(|limit| limit.as_secs_f64()),
            ..ExecRequest::new(Command::Shell(command.to_owned()))
        };
        let mut follower = self.session.client.follow_exec(child, request).await?;
        let (mut stdout, mut stderr) = (OutputEnd::default(), OutputEnd::default());
        loop {
            match follower.next().await? {
                Some(FollowEvent::Stdout(bytes)) => stdout.push(&bytes),
                Some(FollowEvent::Stderr(bytes)) => stderr.push(&bytes),
                Some(FollowEvent::Gap { .. }) => stdout.is_cut = true,
                Some(FollowEvent::Reattached) => {}
                Some(FollowEvent::Exit(exit)) if exit.reason == "timed_out" => {
                    return Err(NoScore::TimedOut);
                }
                Some(FollowEvent::Exit(exit)) => return Ok(Ran::new(exit, &stdout, &stderr)),
                None => return Err(NoScore::NoStatus),
            }
        }
    }
}

impl Ran {
    fn new(exit: ExecExitEvent, stdout: &OutputEnd, stderr: &OutputEnd) -> Self {
        Self {
            exit_code: exit.exit_code,
            reason: exit.reason,
            stdout: stdout.text(),
            stderr: stderr.text(),
            truncated: stdout.is_cut || stderr.is_cut,
        }
    }
}

/// The end of a stream.
#[derive(Debug, Default)]
struct OutputEnd {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl OutputEnd {
    fn push(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
        let surplus = self.bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
        self.is_cut |= surplus > 0;
        self.bytes.drain(..surplus);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// The number in the last line of what a score command printed.
fn score(ran: &Ran) -> Result<f64, NoScore> {
    if ran.exit_code != 0 {
        return Err(NoScore::ScoreFailed {
            exit_code: ran.exit_code,
            stderr: last_line(&ran.stderr),
        });
    }
    let line = last_line(&ran.stdout);
    match line.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) | Err(_) => Err(NoScore::NoNumber { line }),
    }
}

fn last_line(text: &str) -> String {
    let line = text.trim_end().lines().next_back().unwrap_or_default();
    line.trim().chars().take(QUOTED_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(stdout: &str, exit_code: i32) -> Ran {
        Ran {
            exit_code,
            stdout: stdout.to_owned(),
            stderr: "first\nwhy\n".to_owned(),
            ..Ran::default()
        }
    }

    #[test]
    fn the_score_is_the_number_in_the_last_line() {
        for (stdout, expected) in [
            ("1", 1.0),
            ("tests passed:\n  12.5  \n\n", 12.5),
            ("9\n-3\n", -3.0),
            ("1e3\r\n", 1000.0),
        ] {
            let found = score(&printed(stdout, 0)).unwrap();
            assert!((found - expected).abs() < f64::EPSILON, "{stdout:?}");
        }
        for stdout in ["", "5 passed", "1\nfailed\n", "nan", "inf"] {
            let error = score(&printed(stdout, 0)).unwrap_err();
            assert!(matches!(error, NoScore::NoNumber { .. }), "{stdout:?}");
        }
        let error = score(&printed("1\n", 2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the score command ended with status 2: why"
        );
    }

    #[test]
    fn the_end_of_a_long_output_is_kept() {
        let mut output = OutputEnd::default();
        output.push(b"7\n");
        assert!(!output.is_cut);
        output.push(&vec![b'x'; OUTPUT_BYTES_MAX]);
        output.push(b"\n8\n");
        assert!(output.is_cut);
        assert_eq!(output.bytes.len(), OUTPUT_BYTES_MAX);
        assert_eq!(last_line(&output.text()), "8");
    }
}
