//! Variables in the words of instructions, as Docker expands them.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use dayfly_types::limits::{DOCKERFILE_EXPANDED_BYTES_MAX, DOCKERFILE_NESTING_MAX};

use crate::error::{LineProblem, excerpt};

/// Names and values.
pub(crate) type Variables = BTreeMap<String, String>;

/// Where a name is looked up: first above, then below.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) above: &'a Variables,
    pub(crate) below: &'a Variables,
}

impl<'a> Scope<'a> {
    fn get(self, name: &str) -> Option<&'a String> {
        self.above.get(name).or_else(|| self.below.get(name))
    }
}

/// How a text is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) escape: char,
    /// Whether quotes are taken away: in words, but not in documents.
    pub(crate) unquotes: bool,
}

/// How much variables may still become.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(DOCKERFILE_EXPANDED_BYTES_MAX)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), LineProblem> {
        self.0 = self.0.checked_sub(bytes).ok_or(LineProblem::TooMuch {
            what: "what the variables of a stage become, in bytes,",
            limit: DOCKERFILE_EXPANDED_BYTES_MAX,
            instead: "use them less often, or give them shorter values",
        })?;
        Ok(())
    }
}

/// The text with the values of its variables.
pub(crate) fn expand(
    text: &str,
    style: Style,
    scope: Scope<'_>,
    budget: &mut Budget,
) -> Result<String, LineProblem> {
    let expanded = Reader::new(text, style, Some(scope), budget).until(None)?;
    budget.spend(expanded.len())?;
    Ok(expanded)
}

/// Whether a text can be expanded, whatever the values are.
pub(crate) fn check(text: &str, style: Style) -> Result<(), LineProblem> {
    Reader::new(text, style, None, &mut Budget::new())
        .until(None)
        .map(drop)
}

struct Reader<'a> {
    characters: Peekable<Chars<'a>>,
    style: Style,
    /// None while nobody knows the values.
    scope: Option<Scope<'a>>,
    budget: &'a mut Budget,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, style: Style, scope: Option<Scope<'a>>, budget: &'a mut Budget) -> Self {
        Self {
            characters: text.chars().peekable(),
            style,
            scope,
            budget,
            depth: 0,
        }
    }

    /// Reads to the character, or to the end of the text.
    fn until(&mut self, stop: Option<char>) -> Result<String, LineProblem> {
        let mut result = String::new();
        while let Some(one) = self.characters.next() {
            if Some(one) == stop {
                return Ok(result);
            }
            match one {
                '$' => result.push_str(&self.variable()?),
                '\'' if self.style.unquotes => self.single_quoted(&mut result)?,
                '"' if self.style.unquotes => self.double_quoted(&mut result)?,
                _ if one == self.style.escape => result.extend(self.characters.next()),
                _ => result.push(one),
            }
        }
        match stop {
            Some(_) => Err(unclosed("${", "close it with }")),
            None => Ok(result),
        }
    }

    fn single_quoted(&mut self, result: &mut String) -> Result<(), LineProblem> {
        for one in self.characters.by_ref() {
            if one == '\'' {
                return Ok(());
            }
            result.push(one);
        }
        Err(unclosed("'", "close it, or write \\'"))
    }

    fn double_quoted(&mut self, result: &mut String) -> Result<(), LineProblem> {
        let escape = self.style.escape;
        while let Some(one) = self.characters.next() {
            match one {
                '"' => return Ok(()),
                '$' => result.push_str(&self.variable()?),
                _ if one == escape => {
                    let escaped = |next: &char| matches!(next, '"' | '$') || *next == escape;
                    let next = self.characters.next_if(escaped);
                    result.push(next.unwrap_or(one));
                }
                _ => result.push(one),
            }
        }
        Err(unclosed("\"", "close it, or write \\\""))
    }

    /// What stands for a variable; the `$` was read.
    fn variable(&mut self) -> Result<String, LineProblem> {
        if self.characters.next_if_eq(&'{').is_none() {
            let name = self.name();
            if name.is_empty() {
                return Ok("$".to_owned());
            }
            let value = self.value(&name)?;
            return Ok(value.unwrap_or_default());
        }
        self.depth += 1;
        if self.depth > DOCKERFILE_NESTING_MAX {
            return Err(LineProblem::TooMuch {
                what: "${ in each other",
                limit: DOCKERFILE_NESTING_MAX,
                instead: "use a variable of its own for the inner ones",
            });
        }
        let value = self.braced();
        self.depth -= 1;
        value
    }

    fn braced(&mut self) -> Result<String, LineProblem> {
        let name = self.name();
        let Some(mut modifier) = self.characters.next() else {
            return Err(unclosed("${", "close it with }"));
        };
        if name.is_empty() {
            let what = "a ${ has no name after it";
            return Err(LineProblem::invalid(what, "write ${NAME}"));
        }
        if modifier == '}' {
            return Ok(self.value(&name)?.unwrap_or_default());
        }
        let empty_is_unset = modifier == ':';
        if empty_is_unset {
            modifier = self.characters.next().unwrap_or(':');
        }
        if !matches!(modifier, '-' | '+' | '?') {
            let what = format!("${{{}{modifier}...}}", excerpt(&name));
            let instead = "use ${NAME:-default} or ${NAME:+other}, or change the value in RUN";
            return Err(LineProblem::refused(what, instead));
        }
        let word = self.until(Some('}'))?;
        let value = self.value(&name)?;
        let value = value.filter(|value| !(empty_is_unset && value.is_empty()));
        match (modifier, value) {
            ('+', Some(_)) => Ok(word),
            ('+', None) => Ok(String::new()),
            (_, Some(value)) => Ok(value),
            ('?', None) if self.scope.is_some() => Err(required(&name, &word)),
            (_, None) => Ok(word),
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        let is_special = |one: &char| "@*#?-$!0".contains(*one);
        if let Some(one) = self.characters.next_if(is_special) {
            name.push(one);
            return name;
        }
        let is_number = self.characters.peek().is_some_and(char::is_ascii_digit);
        let belongs = |one: &char| match is_number {
            true => one.is_ascii_digit(),
            false => one.is_alphanumeric() || *one == '_',
        };
        while let Some(one) = self.characters.next_if(belongs) {
            name.push(one);
        }
        name
    }

    fn value(&mut self, name: &str) -> Result<Option<String>, LineProblem> {
        let value = self.scope.and_then(|scope| scope.get(name));
        self.budget.spend(value.map_or(0, String::len))?;
        Ok(value.cloned())
    }
}

fn unclosed(what: &str, instead: &'static str) -> LineProblem {
    LineProblem::invalid(format!("{what} is not closed"), instead)
}

fn required(name: &str, message: &str) -> LineProblem {
    let message = match message {
        "" => "it must have a value",
        said => said,
    };
    let what = format!("{}: {}", excerpt(name), excerpt(message));
    LineProblem::invalid(what, "give the argument a value")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Style = Style {
        escape: '\\',
        unquotes: true,
    };

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    fn with(text: &str, style: Style) -> Result<String, LineProblem> {
        let above = variables(&[("both", "above"), ("x", "X"), ("empty", ""), ("q", "'a b'")]);
        let below = variables(&[("both", "below"), ("long_1", "L"), ("1", "one")]);
        let scope = Scope {
            above: &above,
            below: &below,
        };
        expand(text, style, scope, &mut Budget::new())
    }

    #[test]
    fn words_are_expanded_as_docker_does() {
        let cases = [
            ("plain", "plain"),
            ("$x", "X"),
            ("${x}y", "Xy"),
            ("$xy", ""),
            ("$both", "above"),
            ("a${long_1}b", "aLb"),
            ("$long_1/$x", "L/X"),
            ("\\$x", "$x"),
            ("\\\\$x", "\\X"),
            ("'$x'", "$x"),
            ("\"$x\"", "X"),
            ("\"'$x'\"", "'X'"),
            ("\"\\$x \\\" \\a\"", "$x \" \\a"),
            ("a\\ b", "a b"),
            ("${none:-d}", "d"),
            ("${none-d}", "d"),
            ("${empty:-d}", "d"),
            ("${empty-d}", ""),
            ("${x:-d}", "X"),
            ("${x:+a}", "a"),
            ("${x+a}", "a"),
            ("${empty:+a}", ""),
            ("${empty+a}", "a"),
            ("${none:+a}", ""),
            ("${none:-${x}-$both}", "X-above"),
            ("${none:-'}'}", "}"),
            ("${none:-\\}}", "}"),
            ("${x:?no}", "X"),
            ("$", "$"),
            ("$(x)", "$(x)"),
            ("a$", "a$"),
            ("$1x", "onex"),
            ("$$x", "x"),
            // Values are not read again.
            ("$q", "'a b'"),
            ("trailing\\", "trailing"),
        ];
        for (text, expected) in cases {
            assert_eq!(with(text, WORD).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn documents_keep_their_quotes() {
        let style = Style {
            unquotes: false,
            ..WORD
        };
        let text = "it's \"$x\" \\$x '$x'\n";
        assert_eq!(with(text, style).unwrap(), "it's \"X\" $x 'X'\n");
    }

    #[test]
    fn another_escape_character_leaves_backslashes_alone() {
        let style = Style {
            escape: '`',
            ..WORD
        };
        assert_eq!(with("c:\\$x`$x", style).unwrap(), "c:\\X$x");
    }

    #[test]
    fn what_is_not_closed_or_not_known_is_refused() {
        for text in ["'a", "\"a", "${x", "${x:", "${x:-a", "${", "${}", "${:-a}"] {
            assert!(with(text, WORD).is_err(), "{text}");
            assert!(check(text, WORD).is_err(), "{text}");
        }
        for text in ["${x#a}", "${x%%a}", "${x/a/b}", "${x:1}", "${x^}"] {
            let problem = with(text, WORD).unwrap_err();
            assert!(matches!(problem, LineProblem::Refused { .. }), "{text}");
        }
        let problem = with("${none:?give me one}", WORD).unwrap_err();
        assert!(problem.to_string().contains("give me one"), "{problem}");
        assert!(check("${none:?give me one}", WORD).is_ok());
    }

    #[test]
    fn nesting_and_growth_have_an_end() {
        let nested = |depth| "${a:-".repeat(depth) + &"}".repeat(depth);
        assert!(with(&nested(DOCKERFILE_NESTING_MAX), WORD).is_ok());
        assert!(with(&nested(DOCKERFILE_NESTING_MAX + 1), WORD).is_err());
        // One after the other is no nesting.
        assert!(with(&"${a:-b}".repeat(100), WORD).is_ok());
        let large = variables(&[("a", &"a".repeat(1 << 20))]);
        let scope = Scope {
            above: &large,
            below: &Variables::new(),
        };
        let mut budget = Budget::new();
        assert!(expand("$a", WORD, scope, &mut budget).is_ok());
        let problem = expand("$a$a$a$a", WORD, scope, &mut budget).unwrap_err();
        assert!(matches!(problem, LineProblem::TooMuch { .. }));
    }
}
