//! Where a COPY puts its files: what is at its destination decides.

use crate::error::BuildError;

/// What is at a path of a builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Nothing,
    /// Also by a link, which stays.
    Directory,
    File,
    /// A link to a file, or to nothing.
    Link,
}

/// The directory that files go into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) directory: String,
    /// What the only file is called there; nothing if it keeps its name.
    pub(crate) name: Option<String>,
}

/// Decides where files go. `is_single` says that one file is copied, and no directory.
pub(crate) fn target(
    line: usize,
    destination: &str,
    is_directory: bool,
    is_single: bool,
    place: Place,
) -> Result<Target, BuildError> {
    let refused = |what: String| Err(BuildError::Unsupported { line, what });
    match (place, is_single && !is_directory) {
        (Place::Directory, _) | (Place::Nothing, false) => Ok(Target {
            directory: destination.to_owned(),
            name: None,
        }),
        (Place::Nothing | Place::File, true) => {
            let (directory, name) = split(destination);
            let name = Some(name);
            Ok(Target { directory, name })
        }
        (Place::Link, true) => refused(format!(
            "{destination} is a link that leads to no directory; copy to what it leads to, or \
             remove it before"
        )),
        (Place::File | Place::Link, false) => refused(format!(
            "{destination} is no directory, and files are copied into it; use another name, or \
             remove it before"
        )),
    }
}

/// A path as the directory that it is in, and its name there.
pub(crate) fn split(path: &str) -> (String, String) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/".to_owned(), name.to_owned()),
        Some((above, name)) => (above.to_owned(), name.to_owned()),
        None => ("/".to_owned(), path.to_owned()),
    }
}

/// A path, and every directory above it but the root, lowest first.
pub(crate) fn upwards(path: &str) -> Vec<&str> {
    let mut paths = Vec::new();
    let mut left = path.trim_end_matches('/');
    while !left.is_empty() {
        paths.push(left);
        left = left.rsplit_once('/').map_or("", |(above, _)| above);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(destination: &str, is_directory: bool, is_single: bool, place: Place) -> String {
        match target(3, destination, is_directory, is_single, place) {
            Ok(Target {
                directory,
                name: Some(name),
            }) => format!("{directory} as {name}"),
            Ok(target) => target.directory,
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_file_goes_into_a_directory_that_is_there_also_behind_a_link() {
        assert_eq!(placed("/bin", false, true, Place::Directory), "/bin");
        assert_eq!(placed("/bin", true, true, Place::Directory), "/bin");
    }

    #[test]
    fn a_file_takes_the_place_of_a_file_or_of_nothing() {
        assert_eq!(placed("/a/b", false, true, Place::Nothing), "/a as b");
        assert_eq!(placed("/b", false, true, Place::File), "/ as b");
        assert_eq!(placed("/a/b", true, true, Place::Nothing), "/a/b");
    }

    #[test]
    fn a_link_is_not_replaced_and_a_file_is_no_directory() {
        let link = placed("/etc/localtime", false, true, Place::Link);
        assert!(
            link.starts_with("line 3: /etc/localtime is a link"),
            "{link}"
        );
        for place in [Place::File, Place::Link] {
            let refused = placed("/a", false, false, place);
            assert!(refused.contains("/a is no directory"), "{refused}");
        }
        assert_eq!(placed("/a", false, false, Place::Nothing), "/a");
    }

    #[test]
    fn paths_are_split_and_walked_upwards() {
        assert_eq!(split("/a"), ("/".to_owned(), "a".to_owned()));
        assert_eq!(split("/a/b"), ("/a".to_owned(), "b".to_owned()));
        assert_eq!(upwards("/a/b/c"), ["/a/b/c", "/a/b", "/a"]);
        assert!(upwards("/").is_empty());
    }
}
