//! `dayfly explore`: several commands from the same moment, and the best of them kept.
//!
//! The same as `explore` of the SDKs, with commands as candidates: one fork, each candidate in a
//! child of its own, and on every path all children are deleted but the winner.

mod candidates;
mod children;
mod trial;

use serde::Serialize;

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::sandbox::args::ExploreArgs;
use crate::sandbox::explore::children::Children;
use crate::sandbox::explore::trial::{Outcome, Ran, Trial};
use crate::sandbox::prefixes;
use crate::signals::StopSignals;
use crate::{exit_status, text};

pub(crate) async fn explore(session: &Session<'_>, args: &ExploreArgs) -> Result<u8, CommandError> {
    let candidates = candidates::read(args)?;
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let mut signals = StopSignals::install()?;
    let children = Children::fork(session, &id, args.ttl, candidates.len(), &mut signals).await?;
    let trial = Trial {
        session,
        args,
        candidates: &candidates,
    };
    let tried = tokio::select! {
        outcomes = trial.run(children.ids()) => Ok(outcomes),
        signal = signals.next() => Err(CommandError::Interrupted { signal }),
    };
    let outcomes = match tried {
        Ok(outcomes) => outcomes,
        Err(stopped) => {
            session.printer.note("stopping: deleting the children");
            children.delete(session, &mut signals).await;
            return Err(stopped);
        }
    };
    let winner = best(&outcomes).and_then(|best| children.ids().get(best).cloned());
    let are_others_gone = match &winner {
        None => children.delete(session, &mut signals).await,
        Some(winner) if args.promote => children.promote(session, winner, &mut signals).await?,
        Some(winner) => {
            let others = children.without(winner);
            others.delete(session, &mut signals).await
        }
    };
    let attempts = candidates.iter().zip(&outcomes).map(attempt).collect();
    tell(session, winner, attempts, best(&outcomes))?;
    Ok(match are_others_gone {
        true => exit_status::OK,
        false => exit_status::FAILED,
    })
}

/// The number of the highest score; of several the first.
fn best(outcomes: &[Outcome]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (number, outcome) in outcomes.iter().enumerate() {
        if let Outcome::Scored { score, .. } = outcome
            && best.is_none_or(|(_, highest)| *score > highest)
        {
            best = Some((number, *score));
        }
    }
    best.map(|(number, _)| number)
}

/// The one object of `explore --json`, with the words of the SDKs.
#[derive(Debug, Serialize)]
struct Exploration<'a> {
    /// The sandbox of the best attempt, which is kept.
    winner: Option<&'a str>,
    best: Option<&'a Attempt<'a>>,
    attempts: &'a [Attempt<'a>],
}

#[derive(Debug, Serialize)]
struct Attempt<'a> {
    candidate: &'a str,
    result: Option<&'a Ran>,
    score: Option<f64>,
    error: Option<&'a str>,
    /// Not begun, or not waited for, because another one had reached `--stop-at`.
    skipped: bool,
}

fn attempt<'a>((candidate, outcome): (&'a String, &'a Outcome)) -> Attempt<'a> {
    let (result, score, error) = match outcome {
        Outcome::Skipped => (None, None, None),
        Outcome::Failed { error } => (None, None, Some(error.as_str())),
        Outcome::Scored { result, score } => (Some(result), Some(*score), None),
    };
    Attempt {
        candidate,
        result,
        score,
        error,
        skipped: matches!(outcome, Outcome::Skipped),
    }
}

fn tell(
    session: &Session<'_>,
    winner: Option<String>,
    attempts: Vec<Attempt<'_>>,
    best: Option<usize>,
) -> Result<(), CommandError> {
    let printer = session.printer;
    let best = best.and_then(|best| attempts.get(best));
    if printer.is_json() {
        printer.json(&Exploration {
            winner: winner.as_deref(),
            best,
            attempts: &attempts,
        })?;
    }
    let (Some(winner), Some(best)) = (winner, best) else {
        return Err(CommandError::Refused {
            what: "no candidate has a score; all children are deleted".to_owned(),
            hint: "try a candidate and the score command with `dayfly exec ID -- sh -c COMMAND`",
        });
    };
    if !printer.is_json() {
        let candidate = text::visible(best.candidate);
        printer.note(&format!("kept sandbox {winner}, of: {candidate}"));
        printer.line(&text::visible(&winner))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_score_wins_and_of_several_the_first() {
        let scored = |score| Outcome::Scored {
            result: Ran::default(),
            score,
        };
        let failed = || Outcome::Failed {
            error: "lost".to_owned(),
        };
        assert_eq!(best(&[]), None);
        assert_eq!(best(&[failed(), Outcome::Skipped]), None);
        assert_eq!(best(&[failed(), scored(-1.0)]), Some(1));
        let all = [scored(0.5), Outcome::Skipped, scored(2.0), scored(2.0)];
        assert_eq!(best(&all), Some(2));
    }
}
