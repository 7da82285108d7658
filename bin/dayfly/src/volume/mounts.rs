//! `NAME[:PATH][:ro]` on the command line.

use dayfly_api::VolumeMount;

/// Why a text is not a volume with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give NAME, NAME:/PATH, NAME:ro or NAME:/PATH:ro")]
pub(crate) struct InvalidMount;

/// Reads a volume and where it goes. What is a good name and path, the server says.
pub(crate) fn parse(text: &str) -> Result<VolumeMount, InvalidMount> {
    let (rest, read_only) = match text.strip_suffix(":ro") {
        Some(rest) => (rest, Some(true)),
        None => (text, None),
    };
    let (name, path) = match rest.split_once(':') {
        Some((name, path)) if path.starts_with('/') => (name, Some(path.to_owned())),
        Some(_) => return Err(InvalidMount),
        None => (rest, None),
    };
    if name.is_empty() {
        return Err(InvalidMount);
    }
    Ok(VolumeMount {
        name: name.to_owned(),
        path,
        read_only,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_and_the_mark_may_be_left_out() {
        let read = |text: &str| {
            let mount = parse(text).unwrap();
            (mount.name, mount.path, mount.read_only)
        };
        let path = || Some("/data".to_owned());
        assert_eq!(read("a"), ("a".to_owned(), None, None));
        assert_eq!(read("a:ro"), ("a".to_owned(), None, Some(true)));
        assert_eq!(read("a:/data"), ("a".to_owned(), path(), None));
        assert_eq!(read("a:/data:ro"), ("a".to_owned(), path(), Some(true)));
        for text in ["", ":ro", ":/data", "a:data", "a:rw", "a:"] {
            assert_eq!(parse(text), Err(InvalidMount), "{text:?}");
        }
    }
}
