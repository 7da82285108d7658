//! Patterns of paths. A pattern is compared with a path in one pass, whatever both are: in every
//! moment it is known which places of the pattern the path may have come to.

use std::iter::Peekable;
use std::str::Chars;

use thiserror::Error;

/// Why a pattern cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PatternProblem {
    /// `[` is a class of characters.
    #[error("a [ is not closed, or holds no characters; write [[] for the character itself")]
    Class,
    /// `\` takes the next character as it is.
    #[error("a backslash at its end escapes nothing; remove it")]
    Escape,
}

/// What `**` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoubleStar {
    /// No more than `*`: in COPY.
    Star,
    /// Any number of directories: in `.dockerignore`.
    Directories,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Character(char),
    /// `?`
    Any,
    /// `*`: any number of characters that are no slash.
    Star,
    /// Any number of characters.
    Everything,
    /// The next token may be left out.
    Optional,
    /// Anything that ends with a slash.
    Directories,
    /// No class holds the slash.
    Class {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
}

/// A pattern, cut into its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob(Vec<Token>);

impl Glob {
    pub(crate) fn parse(pattern: &str, double_star: DoubleStar) -> Result<Self, PatternProblem> {
        let is_double = |next: &char| double_star == DoubleStar::Directories && *next == '*';
        let mut tokens = Vec::new();
        let mut rest = pattern.chars().peekable();
        while let Some(one) = rest.next() {
            let token = match one {
                '*' if rest.next_if(is_double).is_some() => {
                    let has_slash = rest.next_if_eq(&'/').is_some();
                    let is_last = rest.peek().is_none();
                    // `**name` alone is the end of any path, as in Docker.
                    let is_suffix = tokens.is_empty() && !has_slash && is_plain(rest.clone());
                    if is_last || is_suffix {
                        Token::Everything
                    } else {
                        tokens.push(Token::Optional);
                        Token::Directories
                    }
                }
                '*' => Token::Star,
                '?' => Token::Any,
                '[' => class(&mut rest).ok_or(PatternProblem::Class)?,
                '\\' => Token::Character(rest.next().ok_or(PatternProblem::Escape)?),
                _ => Token::Character(one),
            };
            tokens.push(token);
        }
        Ok(Self(tokens))
    }

    /// Whether the whole path fits.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let mut walk = Walk::new(&self.0);
        path.chars().all(|one| walk.step(one)) && walk.is_at_end()
    }

    /// Whether the path fits, or a directory that it is in.
    pub(crate) fn matches_or_parent(&self, path: &str) -> bool {
        let mut walk = Walk::new(&self.0);
        for one in path.chars() {
            if one == '/' && walk.is_at_end() {
                return true;
            }
            if !walk.step(one) {
                return false;
            }
        }
        walk.is_at_end()
    }

    /// Whether anything in the directory could fit.
    pub(crate) fn may_match_below(&self, directory: &str) -> bool {
        let mut walk = Walk::new(&self.0);
        directory.chars().chain(['/']).all(|one| walk.step(one)) && walk.is_before_end()
    }
}

/// Whether nothing in a pattern has a meaning of its own.
fn is_plain(mut rest: Peekable<Chars<'_>>) -> bool {
    !rest.any(|one| "*?[]\\".contains(one))
}

/// A class as Go reads it; the `[` was read.
fn class(rest: &mut Peekable<Chars<'_>>) -> Option<Token> {
    let is_negated = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && rest.next_if_eq(&']').is_some() {
            return Some(Token::Class { ranges, is_negated });
        }
        let first = class_character(rest)?;
        let last = match rest.next_if_eq(&'-') {
            Some(_) => class_character(rest)?,
            None => first,
        };
        ranges.push((first, last));
    }
}

fn class_character(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    match rest.next()? {
        '-' | ']' => None,
        '\\' => rest.next(),
        one => Some(one),
    }
}

/// The places of a pattern that the beginning of a path may have come to.
struct Walk<'a> {
    tokens: &'a [Token],
    /// One for each token, and one for the end.
    places: Vec<bool>,
    next: Vec<bool>,
}

impl<'a> Walk<'a> {
    fn new(tokens: &'a [Token]) -> Self {
        let mut walk = Self {
            tokens,
            places: vec![false; tokens.len() + 1],
            next: vec![false; tokens.len() + 1],
        };
        set(&mut walk.next, 0);
        walk.arrive();
        walk
    }

    fn is_at_end(&self) -> bool {
        self.places.last() == Some(&true)
    }

    fn is_before_end(&self) -> bool {
        let before = self.places.iter().take(self.tokens.len());
        before.into_iter().any(|place| *place)
    }

    /// Goes on by one character; false when no place is left.
    fn step(&mut self, one: char) -> bool {
        self.next.fill(false);
        for (at, token) in self.tokens.iter().enumerate() {
            if self.places.get(at) != Some(&true) {
                continue;
            }
            let (stays, goes_on) = match token {
                Token::Character(expected) => (false, *expected == one),
                Token::Any => (false, one != '/'),
                Token::Class { ranges, is_negated } => {
                    let holds = ranges
                        .iter()
                        .any(|(first, last)| (first..=last).contains(&&one));
                    (false, one != '/' && holds != *is_negated)
                }
                Token::Star => (one != '/', false),
                Token::Everything => (true, false),
                Token::Directories => (true, one == '/'),
                Token::Optional => (false, false),
            };
            if stays {
                set(&mut self.next, at);
            }
            if goes_on {
                set(&mut self.next, at + 1);
            }
        }
        self.arrive();
        self.places.contains(&true)
    }

    /// Takes the next places, with those behind tokens that need no character.
    fn arrive(&mut self) {
        for (at, token) in self.tokens.iter().enumerate() {
            if self.next.get(at) != Some(&true) {
                continue;
            }
            match token {
                Token::Star | Token::Everything => set(&mut self.next, at + 1),
                Token::Optional => {
                    set(&mut self.next, at + 1);
                    set(&mut self.next, at + 2);
                }
                Token::Character(_) | Token::Any | Token::Class { .. } | Token::Directories => {}
            }
        }
        std::mem::swap(&mut self.places, &mut self.next);
    }
}

fn set(places: &mut [bool], at: usize) {
    if let Some(place) = places.get_mut(at) {
        *place = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Glob::parse(pattern, DoubleStar::Star)
            .unwrap()
            .matches(path)
    }

    #[test]
    fn patterns_are_those_of_go() {
        // From the tests of Go's path/filepath.
        let cases = [
            ("abc", "abc", true),
            ("*", "abc", true),
            ("*c", "abc", true),
            ("a*", "a", true),
            ("a*", "ab/c", false),
            ("a*/b", "abc/b", true),
            ("a*/b", "a/c/b", false),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", false),
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("a*b?c*x", "abxbbxdbxebxczzy", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("a?b", "a☺b", true),
            ("a[^a]b", "a☺b", true),
            ("a???b", "a☺b", false),
            ("[a-ζ]*", "α", true),
            ("*[a-ζ]", "A", false),
            ("a?b", "a/b", false),
            ("a*b", "a/b", false),
            ("[\\]a]", "]", true),
            ("[\\-]", "-", true),
            ("[x\\-]", "x", true),
            ("[\\-x]", "a", false),
            ("*x", "xxx", true),
            ("arr[[]0].txt", "arr[0].txt", true),
            ("**", "a/b", false),
            ("a/**", "a/b", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
        for pattern in [
            "[]a]", "[-]", "[x-]", "[-x]", "[", "[^", "[a", "a\\", "[a-", "a[",
        ] {
            assert!(Glob::parse(pattern, DoubleStar::Star).is_err(), "{pattern}");
        }
    }

    #[test]
    fn no_pattern_takes_longer_than_its_length_says() {
        let pattern = "a*".repeat(2000) + "b";
        let path = "a".repeat(4000);
        assert!(!matches(&pattern, &path));
        let pattern = "**/a/".repeat(800) + "b";
        let glob = Glob::parse(&pattern, DoubleStar::Directories).unwrap();
        assert!(!glob.matches_or_parent(&"a/".repeat(2000)));
    }
}
