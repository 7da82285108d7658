//! A Dockerfile as instructions of one line each: comments gone, continued lines joined.

use std::iter::Peekable;
use std::str::SplitInclusive;

use crate::error::{DockerfileError, LineProblem};

const ESCAPE_DEFAULT: char = '\\';

/// An instruction with what continues it, on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogicalLine {
    /// Where it begins, counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Reads a Dockerfile from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    rest: Peekable<SplitInclusive<'a, char>>,
    /// How many lines were read.
    read: usize,
    pub(crate) escape: char,
}

impl<'a> Lines<'a> {
    /// Reads the directives that a Dockerfile may begin with.
    pub(crate) fn new(text: &'a str) -> Result<Self, DockerfileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Some(at) = text.find('\0') {
            let before = text.get(..at).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let problem = LineProblem::invalid("there is a NUL character", "remove it");
            return Err(problem.at(line));
        }
        let mut lines = Self {
            rest: text.split_inclusive('\n').peekable(),
            read: 0,
            escape: ESCAPE_DEFAULT,
        };
        lines.directives()?;
        Ok(lines)
    }

    fn directives(&mut self) -> Result<(), DockerfileError> {
        let mut seen: Vec<String> = Vec::new();
        while let Some((name, value)) = self.rest.peek().and_then(|line| directive(line)) {
            self.physical();
            if seen.contains(&name) {
                let what = format!("the directive {name} stands here for the second time");
                return Err(LineProblem::invalid(what, "remove one of them").at(self.read));
            }
            if name == "escape" {
                self.escape = match value {
                    "\\" => '\\',
                    "`" => '`',
                    _ => {
                        let instead = "use \\ or `";
                        let problem = LineProblem::value("the escape character", value, instead);
                        return Err(problem.at(self.read));
                    }
                };
            }
            seen.push(name);
        }
        Ok(())
    }

    /// The next line with its end.
    fn physical(&mut self) -> Option<&'a str> {
        let line = self.rest.next()?;
        self.read += 1;
        Some(line)
    }

    /// The next instruction.
    pub(crate) fn next_logical(&mut self) -> Option<LogicalLine> {
        loop {
            let line = without_end(self.physical()?).trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let begins = self.read;
            let (first, mut goes_on) = self.continued(line);
            let mut text = first.to_owned();
            while goes_on {
                let Some(line) = self.physical().map(without_end) else {
                    break;
                };
                let trimmed = line.trim_start();
                if trimmed.is_empty() || trimmed.starts_with('#') {
                    continue;
                }
                let part;
                (part, goes_on) = self.continued(line);
                text.push_str(part);
            }
            let text = text.trim();
            if !text.is_empty() {
                let text = text.to_owned();
                return Some(LogicalLine { line: begins, text });
            }
        }
    }

    /// The line without the mark that the next one continues it, and whether it has one. A mark
    /// that is itself escaped is text.
    fn continued<'b>(&self, line: &'b str) -> (&'b str, bool) {
        let marked = line.trim_end_matches([' ', '\t']);
        match marked.strip_suffix(self.escape) {
            Some(before) if !before.ends_with(self.escape) => (before, true),
            Some(_) | None => (line, false),
        }
    }

    /// The lines up to one that is `name` alone; none if there is no such line.
    pub(crate) fn here_document(&mut self, name: &str, strip_tabs: bool) -> Option<String> {
        let mut content = String::new();
        loop {
            let line = self.physical()?;
            let stripped = line.trim_start_matches('\t');
            let line = if strip_tabs { stripped } else { line };
            if without_end(line) == name {
                return Some(content);
            }
            content.push_str(line);
        }
    }
}

fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// `# name=value` with a name that means something.
fn directive(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.trim().strip_prefix('#')?.split_once('=')?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let is_known = ["syntax", "escape", "check"].contains(&name.as_str());
    (is_known && !value.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(usize, String)> {
        let mut lines = Lines::new(text).unwrap();
        std::iter::from_fn(|| lines.next_logical())
            .map(|one| (one.line, one.text))
            .collect()
    }

    fn one(text: &str) -> String {
        let mut found = all(text);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0).1
    }

    #[test]
    fn continued_lines_are_joined_without_comments_and_empty_lines() {
        let cases = [
            ("RUN a \\\n  b", "RUN a   b"),
            ("RUN a \\  \t\n b", "RUN a  b"),
            ("RUN a\\\nb", "RUN ab"),
            ("RUN a \\\n# no\n  # no \\\n\n   \n b", "RUN a  b"),
            ("RUN a \\\r\n b\r\n", "RUN a  b"),
            ("RUN a \\", "RUN a"),
            ("RUN a \\\n\\\n b", "RUN a  b"),
            // The mark is escaped, so it is text.
            ("RUN a\\\\", "RUN a\\\\"),
            ("# escape=`\nRUN a `\n b\\", "RUN a  b\\"),
            ("\u{feff}# escape=`\nRUN a `\n b", "RUN a  b"),
        ];
        for (text, expected) in cases {
            assert_eq!(one(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_counted_from_where_an_instruction_begins() {
        let text = "# a\n\nFROM x\nRUN a \\\n b\n  \n\\\n\nUSER y";
        let expected = [(3, "FROM x"), (4, "RUN a  b"), (7, "USER y")];
        assert_eq!(
            all(text),
            expected.map(|(line, text)| (line, text.to_owned()))
        );
    }

    #[test]
    fn directives_end_with_the_first_line_that_is_none() {
        let escape = |text: &str| Lines::new(text).unwrap().escape;
        assert_eq!(escape("# syntax = docker/dockerfile:1\n#Escape=`\n"), '`');
        assert_eq!(escape("# a comment\n# escape=`\n"), '\\');
        assert_eq!(escape("\n# escape=`\n"), '\\');
        assert_eq!(escape("# other=1\n# escape=`\n"), '\\');
        assert_eq!(Lines::new("# escape=x\n").unwrap_err().line(), Some(1));
        let twice = Lines::new("# escape=`\n# escape=`\n").unwrap_err();
        assert_eq!(twice.line(), Some(2));
    }
}
