//! From the text of a Dockerfile to its stages.
//!
//! `parse-dockerfile` reads one instruction at a time, on one line. What it does not do the way
//! Docker does is done around it: documents (it knows one at the beginning of a RUN, and not its
//! name), lines that end with two escape characters, `ENTRYPOINT []`, lists that are not of texts.

use dayfly_types::limits::{DOCKERFILE_BYTES_MAX, DOCKERFILE_STAGES_MAX, DOCKERFILE_STEPS_MAX};
use parse_dockerfile::{
    Command, Flag, Instruction as Syntax, JsonOrStringArray, Keyword, UnescapedString,
};

use crate::error::{DockerfileError, LineProblem, excerpt, shortened};
use crate::expand::{Style, check};
use crate::flags::{Flags, unknown};
use crate::instruction::{CommandText, Instruction, InstructionKind, StageText};
use crate::lines::{Lines, LogicalLine};
use crate::{copy_text, health, run_text, stage_text, words};

/// What stands in a line instead of `<<` while `parse-dockerfile` reads it, so that it looks for no
/// documents. No Dockerfile has a NUL.
const SHIELDED: &str = "<\0<";

const KEYWORDS: [&str; 18] = [
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

/// A Dockerfile as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileText {
    pub(crate) escape: char,
    /// ARG before the first FROM.
    pub(crate) arguments: Vec<Instruction>,
    pub(crate) stages: Vec<StageText>,
}

/// Reads all of it.
pub(crate) fn read(text: &str) -> Result<FileText, DockerfileError> {
    if text.len() > DOCKERFILE_BYTES_MAX {
        return Err(DockerfileError::TooLong { found: text.len() });
    }
    let mut lines = Lines::new(text)?;
    let mut file = FileText {
        escape: lines.escape,
        arguments: Vec::new(),
        stages: Vec::new(),
    };
    let mut steps = 0;
    while let Some(logical) = lines.next_logical() {
        let line = logical.line;
        let read = one(&logical, &mut lines, &file.stages).map_err(|problem| problem.at(line))?;
        match read {
            One::Stage(stage) => file.stages.push(stage),
            One::Instruction(instruction) => {
                steps += 1;
                place(instruction, &mut file).map_err(|problem| problem.at(line))?;
            }
        }
        let instead = "join commands, or build an image of its own for a part of it";
        let amounts = [
            ("stages", file.stages.len(), DOCKERFILE_STAGES_MAX),
            ("instructions", steps, DOCKERFILE_STEPS_MAX),
        ];
        if let Some((what, _, limit)) = amounts.into_iter().find(|(_, found, max)| found > max) {
            let problem = LineProblem::TooMuch {
                what,
                limit,
                instead,
            };
            return Err(problem.at(line));
        }
    }
    match file.stages.is_empty() {
        true => Err(DockerfileError::NoStage),
        false => Ok(file),
    }
}

fn place(instruction: Instruction, file: &mut FileText) -> Result<(), LineProblem> {
    let is_argument = matches!(instruction.kind, InstructionKind::Arguments(_));
    match file.stages.last_mut() {
        Some(stage) => stage.instructions.push(instruction),
        None if is_argument => file.arguments.push(instruction),
        None => {
            let what = "only ARG may stand before the first FROM";
            return Err(LineProblem::invalid(what, "move the instruction below it"));
        }
    }
    Ok(())
}

enum One {
    Stage(StageText),
    Instruction(Instruction),
}

/// What all parts of an instruction are read with.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// The whole instruction on one line.
    pub(crate) text: &'a str,
    pub(crate) escape: char,
    /// The stages up to this one, which is the last.
    pub(crate) stages: &'a [StageText],
}

impl Surroundings<'_> {
    /// How words of this Dockerfile are expanded.
    pub(crate) fn style(&self) -> Style {
        Style {
            escape: self.escape,
            unquotes: true,
        }
    }
}

fn one(
    logical: &LogicalLine,
    lines: &mut Lines<'_>,
    stages: &[StageText],
) -> Result<One, LineProblem> {
    let text = logical.text.as_str();
    let (keyword, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim_start();
    let upper = keyword.to_ascii_uppercase();
    let Some(keyword) = KEYWORDS.into_iter().find(|known| *known == upper) else {
        return Err(LineProblem::UnknownInstruction {
            word: excerpt(keyword),
            instead: "check its spelling, or end the line before with \\ if it goes on here",
        });
    };
    let has_flags = ["ADD", "COPY", "FROM", "HEALTHCHECK", "RUN"].contains(&keyword);
    if let Some(flag) = rest.strip_prefix("--").filter(|_| !has_flags) {
        let name = flag.split(['=', ' ', '\t']).next().unwrap_or_default();
        return Err(unknown(keyword, name));
    }
    let instruction = |kind| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let limit = dayfly_types::limits::DOCKERFILE_STEP_CHARACTERS_MAX;
        One::Instruction(Instruction {
            line: logical.line,
            text: shortened(&words.join(" "), limit),
            kind,
        })
    };
    if keyword == "ENTRYPOINT" && list(rest)?.is_some_and(|words| words.is_empty()) {
        let kind = InstructionKind::EntryPoint(CommandText::Words(Vec::new()));
        return Ok(instruction(kind));
    }
    let escape = lines.escape;
    let around = Surroundings {
        text,
        escape,
        stages,
    };
    let directive = if escape == '`' { "# escape=`\n" } else { "" };
    // The parser wants a FROM before anything else.
    let begun = format!("{directive}FROM scratch\n");
    let whole = begun + &text.replace("<<", SHIELDED);
    let mut parsed = parse_dockerfile::parse_iter(&whole).map_err(syntax_error)?;
    let parsed = parsed.nth(1).transpose().map_err(syntax_error)?;
    let Some(parsed) = parsed else {
        return Err(LineProblem::invalid("there is no instruction", "add one"));
    };
    if let Syntax::From(from) = &parsed {
        let stage = stage_text::read(from, logical.line, around)?;
        return Ok(One::Stage(stage));
    }
    kind(parsed, &whole, around, lines).map(instruction)
}

fn syntax_error(error: parse_dockerfile::Error) -> LineProblem {
    // Without the place, which is that of the line alone.
    let what = excerpt(&plain(&format!("{error:#}")));
    LineProblem::invalid(what, "see the Dockerfile reference")
}

/// A part of an instruction as it was written.
pub(crate) fn plain(text: &str) -> String {
    text.replace(SHIELDED, "<<")
}

fn plain_words(words: &[UnescapedString<'_>]) -> Result<Vec<String>, LineProblem> {
    let plain = |word: &UnescapedString<'_>| {
        let word = plain(&word.value);
        // JSON can write one.
        match word.contains('\0') {
            true => Err(LineProblem::invalid("a word has a NUL in it", "remove it")),
            false => Ok(word),
        }
    };
    words.iter().map(plain).collect()
}

fn kind(
    parsed: Syntax<'_>,
    whole: &str,
    around: Surroundings<'_>,
    lines: &mut Lines<'_>,
) -> Result<InstructionKind, LineProblem> {
    match parsed {
        Syntax::Add(add) => {
            let flags = Flags::new("ADD", &add.options)?;
            let rest = behind(whole, &add.add, &add.options);
            copy_text::read(flags, &add.src, &add.dest, &rest, around, lines)
        }
        Syntax::Copy(copy) => {
            let flags = Flags::new("COPY", &copy.options)?;
            let rest = behind(whole, &copy.copy, &copy.options);
            copy_text::read(flags, &copy.src, &copy.dest, &rest, around, lines)
        }
        Syntax::Run(run) => run_text::read(&run, around, lines),
        Syntax::Arg(arg) => {
            let declared = words::declarations(&plain(&arg.arguments.value), around.escape)?;
            for default in declared.iter().filter_map(|(_, default)| default.as_ref()) {
                check(default, around.style())?;
            }
            Ok(InstructionKind::Arguments(declared))
        }
        Syntax::Env(env) => {
            let pairs = pairs("ENV", &env.arguments, around)?;
            Ok(InstructionKind::Environment(pairs))
        }
        Syntax::Cmd(cmd) => Ok(InstructionKind::Command(command("CMD", &cmd.arguments)?)),
        Syntax::Entrypoint(entry) => {
            let command = command("ENTRYPOINT", &entry.arguments)?;
            Ok(InstructionKind::EntryPoint(command))
        }
        Syntax::Shell(shell) => Ok(InstructionKind::Shell(plain_words(&shell.arguments)?)),
        Syntax::Healthcheck(health) => health::read(&health).map(InstructionKind::Health),
        Syntax::User(user) => checked(&user.arguments, around).map(InstructionKind::User),
        Syntax::Workdir(directory) => {
            checked(&directory.arguments, around).map(InstructionKind::Directory)
        }
        Syntax::Expose(expose) => accepted(&expose.arguments, around),
        Syntax::Stopsignal(signal) => accepted(std::slice::from_ref(&signal.arguments), around),
        Syntax::Volume(volume) => match &volume.arguments {
            JsonOrStringArray::Json(words) => accepted(&words.value, around),
            JsonOrStringArray::String(words) => accepted(words, around),
        },
        Syntax::Maintainer(_) => Ok(InstructionKind::Other),
        Syntax::Label(label) => {
            pairs("LABEL", &label.arguments, around).map(|_| InstructionKind::Other)
        }
        Syntax::Onbuild(_) => {
            let instead = "put the instruction into the Dockerfiles that are built on this one";
            Err(LineProblem::refused("ONBUILD", instead))
        }
        // Every FROM was read by the caller, and every other keyword is in the list above.
        Syntax::From(_) | _ => {
            let instead = "use another instruction";
            Err(LineProblem::refused("the instruction", instead))
        }
    }
}

/// An instruction that is accepted, and that nothing here depends on.
fn accepted(
    words: &[UnescapedString<'_>],
    around: Surroundings<'_>,
) -> Result<InstructionKind, LineProblem> {
    for word in words {
        checked(word, around)?;
    }
    Ok(InstructionKind::Other)
}

/// A text in which variables can be expanded.
fn checked(text: &UnescapedString<'_>, around: Surroundings<'_>) -> Result<String, LineProblem> {
    let text = plain(&text.value);
    check(&text, around.style())?;
    Ok(text)
}

/// What stands behind the flags of an instruction.
fn behind(whole: &str, keyword: &Keyword, flags: &[Flag<'_>]) -> String {
    let end = flags
        .last()
        .map_or(keyword.span.end, |flag| flag.span().end);
    plain(whole.get(end..).unwrap_or_default().trim())
}

fn pairs(
    instruction: &'static str,
    rest: &UnescapedString<'_>,
    around: Surroundings<'_>,
) -> Result<Vec<(String, String)>, LineProblem> {
    let pairs = words::pairs(instruction, &plain(&rest.value), around.escape)?;
    for word in pairs.iter().flat_map(|(name, value)| [name, value]) {
        check(word, around.style())?;
    }
    Ok(pairs)
}

/// A command in either form, without the documents that it may read.
pub(crate) fn command(
    instruction: &'static str,
    command: &Command<'_>,
) -> Result<CommandText, LineProblem> {
    let text = match command {
        Command::Exec(words) => return plain_words(&words.value).map(CommandText::Words),
        Command::Shell(text) => plain(text.value),
        _ => String::new(),
    };
    if let Some(words) = list(&text)? {
        return Ok(CommandText::Words(words));
    }
    if text.is_empty() {
        let what = format!("{instruction} has no command");
        return Err(LineProblem::invalid(what, "add one"));
    }
    Ok(CommandText::Shell(text))
}

/// The texts of a JSON list; none if it is no list. A list of anything else is refused, as Docker
/// does, because nobody means it as a command.
pub(crate) fn list(text: &str) -> Result<Option<Vec<String>>, LineProblem> {
    let text = text.trim();
    if !text.starts_with('[') {
        return Ok(None);
    }
    let Ok(values) = serde_json::from_str::<Vec<serde_json::Value>>(text) else {
        return Ok(None);
    };
    let text = |value: serde_json::Value| {
        let text = value.as_str().filter(|text| !text.contains('\0'));
        text.map(str::to_owned).ok_or_else(|| {
            let instead = "write every word in double quotes";
            LineProblem::value("a word of the list", &value.to_string(), instead)
        })
    };
    values
        .into_iter()
        .map(text)
        .collect::<Result<_, _>>()
        .map(Some)
}
