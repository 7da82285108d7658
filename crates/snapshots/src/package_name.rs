//! What counts as the name of a package. Nothing that passes can be taken for an option, a path,
//! an address or a pattern by the program that it is handed to.

const NAME_BYTES_MAX: usize = 128;

/// Debian policy 5.6.1.
pub(crate) fn is_debian(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    // A trailing hyphen or plus asks the package manager to remove or to keep.
    let ends_well = !text.ends_with(['-', '+']) || text.ends_with("++");
    text.len() >= 2
        && text.len() <= NAME_BYTES_MAX
        && text.bytes().next().is_some_and(first)
        && text.bytes().all(inner)
        && ends_well
}

/// A package of the Python registry, alone or as `NAME==VERSION`.
pub(crate) fn is_python(text: &str) -> bool {
    let (name, version) = match text.split_once("==") {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    is_word(name, is_inner) && version.is_none_or(is_version)
}

/// A package of the Node registry, with or without its scope, alone or as `NAME@VERSION`.
pub(crate) fn is_node(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    let (scope, rest) = match text.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, rest)) => (Some(scope), rest),
            None => return false,
        },
        None => (None, text),
    };
    let (name, version) = match rest.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (rest, None),
    };
    scope.is_none_or(|scope| is_word(scope, is_inner))
        && is_word(name, is_inner)
        && version.is_none_or(is_version)
}

/// Digits first, such as `1.2.3` or `2.0.0rc1`.
pub(crate) fn is_version(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b"._+-".contains(&b);
    text.starts_with(|first: char| first.is_ascii_digit()) && is_word(text, is_inner)
}

/// Begins and ends with a letter or digit.
fn is_word(text: &str, is_inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= NAME_BYTES_MAX
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| is_inner(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_debian_names_are_refused() {
        let hostile = [
            "-oDpkg::x",
            "a b",
            "a,b",
            "git/sid",
            "git-",
            "/etc/x.deb",
            "?all",
            "",
            "git=",
        ];
        assert!(hostile.iter().all(|name| !is_debian(name)));
        assert!(
            ["g++", "libstdc++6", "python3.11"]
                .into_iter()
                .all(is_debian)
        );
    }

    #[test]
    fn python_names_are_names_and_no_addresses_or_options() {
        let good = ["uv", "scikit-learn", "Jinja2", "uv==0.9.1", "a==2.0.0rc1"];
        assert!(good.into_iter().all(is_python));
        let hostile = [
            "",
            "-r",
            "--index-url",
            "./x",
            "/x",
            "a b",
            "a @ file:x",
            "https://x",
            "a==",
            "a==-1",
            "a[b]",
            "a;b",
            "a>=1",
        ];
        assert!(hostile.iter().all(|name| !is_python(name)));
    }

    #[test]
    fn node_names_are_names_and_no_addresses_or_options() {
        let good = ["npm", "@openai/codex", "left-pad@1.3.0", "@a/b@2.0.0-rc.1"];
        assert!(good.into_iter().all(is_node));
        let hostile = [
            "",
            "-g",
            "../x",
            "a/b",
            "@a",
            "@/b",
            "@a/",
            "git+ssh://x",
            "a@",
            "a@latest",
            "a@file:x",
            "a b",
            "@a/b/c",
        ];
        assert!(hostile.iter().all(|name| !is_node(name)));
    }
}
