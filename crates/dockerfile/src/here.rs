//! Words like `<<EOF`, which say that the lines below are a document.

/// What a word says of its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HereWord {
    /// The line that ends it.
    pub(crate) name: String,
    /// Whether variables in it are expanded: not if any of the name is quoted.
    pub(crate) expands: bool,
    /// `<<-`: tabs at the beginning of its lines are left out.
    pub(crate) strips_tabs: bool,
}

/// All documents that an instruction announces, in their order. A line whose quotes do not match
/// announces none; whoever reads it next says what is wrong.
pub(crate) fn announced(line: &str) -> Vec<HereWord> {
    let words = split(line).unwrap_or_default();
    words.iter().filter_map(|word| read(word)).collect()
}

/// What one word announces, if it announces anything: `<<EOF`, `<<-EOF`, `3<<"EOF"`.
pub(crate) fn read(word: &str) -> Option<HereWord> {
    let rest = word.trim_start_matches(|one: char| one.is_ascii_digit());
    let rest = rest.strip_prefix("<<")?;
    let (rest, strips_tabs) = match rest.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let rest = rest.trim_start();
    if rest.contains('<') {
        return None;
    }
    let name = unquoted(rest).filter(|name| !name.is_empty())?;
    Some(HereWord {
        name,
        expands: !rest.contains(['"', '\'']),
        strips_tabs,
    })
}

/// Words as a shell would see them, with their quotes. Spaces after `<<` belong to the word.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut characters = line.chars().peekable();
    while let Some(one) = characters.next() {
        if one.is_whitespace() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            continue;
        }
        word.push(one);
        match one {
            '\\' => word.extend(characters.next()),
            '\'' => loop {
                let next = characters.next()?;
                word.push(next);
                if next == '\'' {
                    break;
                }
            },
            '"' => loop {
                let next = characters.next()?;
                word.push(next);
                match next {
                    '"' => break,
                    '\\' => word.push(characters.next()?),
                    _ => {}
                }
            },
            '<' if characters.next_if_eq(&'<').is_some() => {
                word.push('<');
                while let Some(space) = characters.next_if(|next| next.is_whitespace()) {
                    word.push(space);
                }
            }
            _ => {}
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    Some(words)
}

/// One word without its quotes; none if it is more than one, or if its quotes do not match.
fn unquoted(word: &str) -> Option<String> {
    let mut plain = String::new();
    let mut quote = None;
    let mut characters = word.chars();
    while let Some(one) = characters.next() {
        match (quote, one) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(one),
            (None | Some('"'), '\\') => plain.extend(characters.next()),
            (None, space) if space.is_whitespace() => return None,
            (Some(_) | None, other) => plain.push(other),
        }
    }
    quote.is_none().then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_found_as_buildkit_finds_them() {
        let cases: [(&str, &[&str]); 19] = [
            ("RUN <<EOF", &["EOF"]),
            ("RUN <<-EOF", &["EOF"]),
            ("RUN <<\"EOF\"", &["EOF"]),
            ("RUN << EOF", &["EOF"]),
            ("RUN <<- EOF", &[]),
            ("RUN << -EOF", &["-EOF"]),
            ("RUN 4<<EOF", &["EOF"]),
            ("RUN <<EO\"F\"", &["EOF"]),
            ("RUN <<$EOF", &["$EOF"]),
            ("RUN cat <<EOF > /x", &["EOF"]),
            ("RUN <<A <<'B c'", &["A", "B c"]),
            ("RUN '<<EOF'", &[]),
            ("RUN \"<<EOF\"", &[]),
            ("RUN cat <<<EOF", &[]),
            ("RUN echo $((1<<2))", &[]),
            ("RUN <<", &[]),
            ("RUN <<-", &[]),
            ("RUN echo \"it's\" \\' <<EOF", &["EOF"]),
            ("RUN echo 'open <<EOF", &[]),
        ];
        for (line, names) in cases {
            let found: Vec<String> = announced(line).into_iter().map(|one| one.name).collect();
            assert_eq!(found, names, "{line}");
        }
    }

    #[test]
    fn a_quoted_name_is_for_a_document_as_it_stands() {
        assert!(read("<<EOF").unwrap().expands);
        assert!(!read("<<'EOF'").unwrap().expands);
        assert!(!read("<<EO\"F\"").unwrap().expands);
        assert!(read("<<-EOF").unwrap().strips_tabs);
        assert_eq!(read("<<EOF sh"), None);
        assert_eq!(read("<<'EOF"), None);
    }
}
