//! COPY and ADD.

use dayfly_types::limits::DOCKERFILE_SOURCES_MAX;
use parse_dockerfile::{Source, UnescapedString};

use crate::error::{LineProblem, excerpt};
use crate::expand::{Style, check};
use crate::flags::Flags;
use crate::here;
use crate::instruction::{CopyFromText, CopyText, InlineText, InstructionKind};
use crate::lines::Lines;
use crate::path::means_directory;
use crate::run_text::content;
use crate::stage_text::tree;
use crate::step::MountFrom;
use crate::syntax::{Surroundings, list, plain};

/// `rest` is what stands behind the flags.
pub(crate) fn read(
    mut flags: Flags,
    sources: &[Source<'_>],
    destination: &UnescapedString<'_>,
    rest: &str,
    around: Surroundings<'_>,
    lines: &mut Lines<'_>,
) -> Result<InstructionKind, LineProblem> {
    let is_add = flags.instruction() == "ADD";
    let from = if is_add { None } else { flags.take("from")? };
    let owner = flags.take("chown")?;
    let mode = flags.take("chmod")?;
    // It changes how layers are shared, and not what is in them.
    flags.take_switch("link")?;
    flags.finish()?;
    let words = words(sources, destination, rest)?;
    let Some((destination, sources)) = words.texts.split_last() else {
        return Err(LineProblem::invalid("there is no destination", "add one"));
    };
    if sources.len() > DOCKERFILE_SOURCES_MAX {
        return Err(LineProblem::TooMuch {
            what: "sources of one instruction",
            limit: DOCKERFILE_SOURCES_MAX,
            instead: "name a directory or use wildcards",
        });
    }
    check_mode(mode.as_deref())?;
    for text in words.texts.iter().chain(&owner).chain(&mode) {
        check(text, around.style())?;
    }
    check_destination(sources.len(), destination)?;
    let (documents, sources): (Vec<&String>, Vec<&String>) = sources
        .iter()
        .partition(|source| !words.is_list && here::read(source).is_some());
    let is_document = |text: &str| !words.is_list && (text == "<<" || here::read(text).is_some());
    if is_document(destination) || sources.iter().any(|source| is_document(source)) {
        let what = "a document stands where there can be none";
        return Err(LineProblem::invalid(
            what,
            "write <<NAME without a space, before the path",
        ));
    }
    sources.iter().try_for_each(|source| check_source(source))?;
    let from = match (documents.is_empty(), sources.is_empty(), from) {
        (true, _, None) => CopyFromText::Tree(MountFrom::Context),
        (true, _, Some(from)) => CopyFromText::Tree(tree(&from, around)?),
        (false, true, None) => CopyFromText::Inline(inline(&documents, lines)?),
        (false, _, _) => {
            let instead = "use an instruction of its own for each";
            let what = "documents together with files or --from";
            return Err(LineProblem::refused(what, instead));
        }
    };
    let is_inline = matches!(from, CopyFromText::Inline(_));
    Ok(InstructionKind::Copy(CopyText {
        from,
        sources: sources.into_iter().cloned().collect(),
        destination: destination.clone(),
        owner,
        mode,
        unpacks: is_add && !is_inline,
    }))
}

struct Words {
    texts: Vec<String>,
    /// Whether they are written as a JSON list, in which nothing announces a document.
    is_list: bool,
}

fn words(
    sources: &[Source<'_>],
    destination: &UnescapedString<'_>,
    rest: &str,
) -> Result<Words, LineProblem> {
    let mut texts = Vec::new();
    for source in sources {
        let Source::Path(path) = source else {
            return Err(LineProblem::invalid("a document", "write <<NAME"));
        };
        texts.push(plain(&path.value));
    }
    texts.push(plain(&destination.value));
    if let Some(texts) = list(rest)? {
        let is_list = true;
        return Ok(Words { texts, is_list });
    }
    let is_list = false;
    Ok(Words { texts, is_list })
}

fn inline(words: &[&String], lines: &mut Lines<'_>) -> Result<Vec<InlineText>, LineProblem> {
    let mut files: Vec<InlineText> = Vec::new();
    for word in words.iter().filter_map(|word| here::read(word)) {
        let is_taken = files.iter().any(|file| file.name == word.name);
        if is_taken || word.name.contains('/') || [".", ".."].contains(&word.name.as_str()) {
            let instead = "use another word; it becomes the name of a file";
            return Err(LineProblem::value(
                "the name of a document",
                &word.name,
                instead,
            ));
        }
        let content = content(&word, lines)?;
        if word.expands {
            check(&content, DOCUMENT)?;
        }
        files.push(InlineText {
            content,
            expands: word.expands,
            name: word.name,
        });
    }
    Ok(files)
}

/// How variables in documents are expanded, whatever the escape character of the Dockerfile is.
pub(crate) const DOCUMENT: Style = Style {
    escape: '\\',
    unquotes: false,
};

/// More than one source needs a directory to go to.
pub(crate) fn check_destination(sources: usize, destination: &str) -> Result<(), LineProblem> {
    if sources < 2 || destination.contains('$') || means_directory(destination) {
        return Ok(());
    }
    let what = format!("{:?} is to hold several files", excerpt(destination));
    Err(LineProblem::invalid(
        what,
        "end the destination with a slash",
    ))
}

/// Nothing is fetched here: whoever builds could not say what came, nor keep it from changing.
pub(crate) fn check_source(source: &str) -> Result<(), LineProblem> {
    let (host, _) = source.split_once('/').unwrap_or((source, ""));
    let is_login = host.contains('@') && host.contains(':');
    if !source.contains("://") && !is_login {
        return Ok(());
    }
    let what = format!("the address {:?} as a source", excerpt(source));
    let instead = "fetch it with RUN (curl, git clone), or put it into the build context";
    Err(LineProblem::refused(what, instead))
}

fn check_mode(mode: Option<&str>) -> Result<(), LineProblem> {
    match mode {
        Some(mode) if !mode.contains('$') => read_mode(mode).map(drop),
        Some(_) | None => Ok(()),
    }
}

/// `--chmod`.
pub(crate) fn read_mode(mode: &str) -> Result<u32, LineProblem> {
    let is_octal = mode.chars().all(|one| one.is_digit(8));
    let number = u32::from_str_radix(mode, 8).ok();
    number
        .filter(|number| is_octal && *number <= 0o7777)
        .ok_or_else(|| {
            let instead = "write octal digits, as in 755; for others use RUN chmod";
            LineProblem::value("the mode", mode, instead)
        })
}
