//! FROM, and the names of stages.

use parse_dockerfile::FromInstruction;

use crate::error::{LineProblem, excerpt};
use crate::expand::check;
use crate::flags::Flags;
use crate::instruction::StageText;
use crate::step::MountFrom;
use crate::syntax::{Surroundings, plain};

/// The only platform that machines here have.
pub(crate) const PLATFORM: &str = "linux/amd64";

pub(crate) fn read(
    from: &FromInstruction<'_>,
    line: usize,
    around: Surroundings<'_>,
) -> Result<StageText, LineProblem> {
    let mut flags = Flags::new("FROM", &from.options)?;
    let platform = flags.take("platform")?;
    flags.finish()?;
    if let Some(platform) = &platform {
        check(platform, around.style())?;
        if !platform.contains('$') {
            check_platform(platform)?;
        }
    }
    let image = plain(&from.image.value);
    check(&image, around.style())?;
    let name = from.as_.as_ref().map(|(_, name)| plain(&name.value));
    let name = name.map(|name| stage_name(&name, around)).transpose()?;
    Ok(StageText {
        line,
        image,
        platform,
        name,
        instructions: Vec::new(),
    })
}

pub(crate) fn check_platform(platform: &str) -> Result<(), LineProblem> {
    if platform == PLATFORM {
        return Ok(());
    }
    let what = format!("the platform {:?}", excerpt(platform));
    let instead = "use linux/amd64, $BUILDPLATFORM or $TARGETPLATFORM, or leave it out";
    Err(LineProblem::refused(what, instead))
}

fn stage_name(name: &str, around: Surroundings<'_>) -> Result<String, LineProblem> {
    let lower = name.to_ascii_lowercase();
    let begins = lower.starts_with(|one: char| one.is_ascii_lowercase());
    let is_part =
        |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || "-_.".contains(one);
    let is_reserved = ["scratch", "context"].contains(&lower.as_str());
    if !begins || !lower.chars().all(is_part) || is_reserved {
        let instead = "use a letter, then letters, digits, -, _ and .; not scratch or context";
        return Err(LineProblem::value("the name of a stage", name, instead));
    }
    let is_taken = |stage: &StageText| stage.name.as_deref() == Some(lower.as_str());
    if around.stages.iter().any(is_taken) {
        let what = format!("there is a stage {lower:?} already");
        return Err(LineProblem::invalid(what, "use another name"));
    }
    Ok(lower)
}

/// What `--from` and `from=` name: an earlier stage by its name or number, or an image.
pub(crate) fn tree(from: &str, around: Surroundings<'_>) -> Result<MountFrom, LineProblem> {
    if from.contains('$') {
        let instead = "add `FROM IMAGE AS name` with an ARG before the first FROM, and name that";
        return Err(LineProblem::refused("a variable in from", instead));
    }
    // The last is the stage itself.
    let earlier = around.stages.len().saturating_sub(1);
    if let Ok(number) = from.parse::<usize>() {
        if number < earlier {
            return Ok(MountFrom::Stage(number));
        }
        let instead = "use the number of an earlier stage, counted from 0, or its name";
        return Err(LineProblem::value("the number of a stage", from, instead));
    }
    let lower = from.to_ascii_lowercase();
    let named = |stage: &StageText| stage.name.as_deref() == Some(lower.as_str());
    match around.stages.iter().position(named) {
        Some(stage) if stage < earlier => Ok(MountFrom::Stage(stage)),
        Some(_) => Err(not_earlier(&lower)),
        None => Ok(MountFrom::Image(from.to_owned())),
    }
}

/// Refuses names that turned out to be those of stages further down.
pub(crate) fn check_later(stages: &[StageText]) -> Result<(), crate::DockerfileError> {
    for (number, stage) in stages.iter().enumerate() {
        let later = stages.iter().skip(number);
        let later: Vec<&str> = later.filter_map(|stage| stage.name.as_deref()).collect();
        for instruction in &stage.instructions {
            for tree in instruction.kind.trees() {
                let MountFrom::Image(image) = tree else {
                    continue;
                };
                let lower = image.to_ascii_lowercase();
                if later.contains(&lower.as_str()) {
                    return Err(not_earlier(&lower).at(instruction.line));
                }
            }
        }
    }
    Ok(())
}

fn not_earlier(name: &str) -> LineProblem {
    let what = format!("the stage {name:?} is not before this one");
    LineProblem::invalid(what, "move it up, or copy from another")
}
