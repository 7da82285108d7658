//! HEALTHCHECK.

use parse_dockerfile::{HealthcheckArguments, HealthcheckInstruction};

use crate::config::{StageHealth, StageHealthCommand};
use crate::duration;
use crate::error::LineProblem;
use crate::flags::Flags;
use crate::instruction::CommandText;
use crate::syntax::command;

/// None for `HEALTHCHECK NONE`.
pub(crate) fn read(
    health: &HealthcheckInstruction<'_>,
) -> Result<Option<StageHealth>, LineProblem> {
    let mut flags = Flags::new("HEALTHCHECK", &health.options)?;
    let arguments = match &health.arguments {
        HealthcheckArguments::Cmd { arguments, .. } => arguments,
        HealthcheckArguments::None { .. } => return flags.finish().map(|()| None),
        _ => return Err(LineProblem::invalid("HEALTHCHECK", "use CMD or NONE")),
    };
    let mut time = |name: &'static str| match flags.take(name)? {
        Some(text) => duration::read(name, &text),
        None => Ok(None),
    };
    let interval = time("interval")?;
    let timeout = time("timeout")?;
    let start_period = time("start-period")?;
    let start_interval = time("start-interval")?;
    let retries = match flags.take("retries")? {
        Some(text) => {
            let wrong = |_| LineProblem::value("retries", &text, "write a number, as in 3");
            Some(text.parse::<u32>().map_err(wrong)?).filter(|number| *number > 0)
        }
        None => None,
    };
    flags.finish()?;
    let command = match command("HEALTHCHECK CMD", arguments)? {
        CommandText::Words(words) if words.is_empty() => {
            let what = "HEALTHCHECK CMD has no command";
            return Err(LineProblem::invalid(what, "add one, or use NONE"));
        }
        CommandText::Words(words) => StageHealthCommand::Words(words),
        CommandText::Shell(text) | CommandText::Script(text) => StageHealthCommand::Shell(text),
    };
    Ok(Some(StageHealth {
        command,
        interval,
        timeout,
        start_period,
        start_interval,
        retries,
    }))
}
