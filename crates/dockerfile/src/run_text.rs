//! RUN: its flags, its command, and the documents that the command reads.

use parse_dockerfile::RunInstruction;

use crate::error::{LineProblem, excerpt};
use crate::flags::Flags;
use crate::here::{self, HereWord};
use crate::instruction::{CommandText, InstructionKind};
use crate::lines::Lines;
use crate::mount_text;
use crate::syntax::{Surroundings, command};

pub(crate) fn read(
    run: &RunInstruction<'_>,
    around: Surroundings<'_>,
    lines: &mut Lines<'_>,
) -> Result<InstructionKind, LineProblem> {
    let mut flags = Flags::new("RUN", &run.options)?;
    let mounts = flags.take_all("mount")?;
    let network = flags.take("network")?;
    flags.finish()?;
    if let Some(network) = network.filter(|network| network != "default") {
        let what = format!("RUN --network={}", excerpt(&network));
        let instead = "leave it out; the network policy of the build holds for every RUN";
        return Err(LineProblem::refused(what, instead));
    }
    let mounts = mounts.iter().map(|text| mount_text::read(text, around));
    let mounts = mounts.collect::<Result<_, _>>()?;
    let command = match command("RUN", &run.arguments)? {
        CommandText::Words(words) if words.is_empty() => {
            let what = "RUN has no command";
            return Err(LineProblem::invalid(what, "add one"));
        }
        CommandText::Shell(text) => with_documents(text, around, lines)?,
        other @ (CommandText::Words(_) | CommandText::Script(_)) => other,
    };
    Ok(InstructionKind::Run { command, mounts })
}

/// A command that is nothing but a document is the document; any other gets what it reads below
/// itself, for its shell.
fn with_documents(
    mut text: String,
    around: Surroundings<'_>,
    lines: &mut Lines<'_>,
) -> Result<CommandText, LineProblem> {
    let announced = here::announced(around.text);
    if let [only] = announced.as_slice()
        && here::read(&text).as_ref() == Some(only)
    {
        let content = content(only, lines)?;
        return Ok(match content.starts_with("#!") {
            true => CommandText::Script(content),
            false => CommandText::Shell(content),
        });
    }
    for word in announced {
        let content = content(&word, lines)?;
        text.extend(["\n", &content, &word.name]);
    }
    Ok(CommandText::Shell(text))
}

/// The lines below the instruction up to the name.
pub(crate) fn content(word: &HereWord, lines: &mut Lines<'_>) -> Result<String, LineProblem> {
    let content = lines.here_document(&word.name, word.strips_tabs);
    content.ok_or_else(|| {
        let what = format!("the document {:?} has no end", excerpt(&word.name));
        LineProblem::invalid(
            what,
            "end it with a line that has its name and nothing else",
        )
    })
}
