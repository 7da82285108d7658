//! What `strace` saw: every call with a path, and every call about the network.

use std::path::{Component, Path, PathBuf};

/// Calls of a program.
#[derive(Debug)]
pub(crate) struct Trace {
    text: String,
    /// Where the program began.
    directory: PathBuf,
}

/// What every program on this kind of system reads to start: the loader's cache and libraries.
const LIBRARIES: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
const START: [&str; 4] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    // What the allocator of the C library wants to know.
    "/sys/devices/system/cpu/online",
    "/proc/sys/vm/overcommit_memory",
];
/// Where distributions keep the certificates of public authorities, and where links there lead.
const CERTIFICATES: [&str; 6] = [
    "/etc/ssl",
    "/usr/lib/ssl",
    "/etc/pki",
    "/etc/security/certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];
const OWN_PROCESS: &str = "/proc/self";

impl Trace {
    pub(crate) fn new(text: String, directory: PathBuf) -> Self {
        Self { text, directory }
    }

    /// Lines without the process that each begins with.
    fn calls(&self) -> impl Iterator<Item = &str> {
        let lines = self.text.lines();
        lines.map(|line| line.trim_start_matches(|one: char| one.is_ascii_digit() || one == ' '))
    }

    /// Directories of the kernel about the process itself, by every name that they have.
    fn own_process(&self) -> Vec<PathBuf> {
        let processes = self.text.lines().filter_map(|line| line.split(' ').next());
        let mut found: Vec<PathBuf> = processes
            .map(|process| Path::new("/proc").join(process))
            .collect();
        found.push(PathBuf::from(OWN_PROCESS));
        found.sort();
        found.dedup();
        found
    }

    /// How often one of these was called.
    pub(crate) fn count(&self, names: &[&str]) -> usize {
        let is_one = |call: &&str| names.contains(&name_of(call));
        self.calls().filter(is_one).count()
    }

    /// Every path that was named in a call, and every one that an opened file really has.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.calls().flat_map(|call| self.paths_of(call)).collect()
    }

    fn paths_of(&self, call: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        // The directory that a name is looked for in, as it stands before the name.
        let mut base = self.directory.clone();
        let mut rest = call;
        while let Some(at) = rest.find(['"', '<']) {
            let (is_text, inner) = (rest[at..].starts_with('"'), &rest[at + 1..]);
            let (text, after) = match is_text {
                true => until_quote(inner),
                false => inner.split_once('>').unwrap_or((inner, "")),
            };
            rest = after;
            if is_text {
                found.push(base.join(unescaped(text)));
            } else if text.starts_with('/') {
                base = PathBuf::from(unescaped(text));
                // Also what a call returned: where a link led.
                found.push(base.clone());
            }
        }
        found
    }

    /// What it has no business with, each path once.
    pub(crate) fn outside(&self, program: &Path) -> Vec<PathBuf> {
        let own_process = self.own_process();
        let is_inside = |path: &PathBuf| {
            let is_plain = !path.components().any(|part| part == Component::ParentDir);
            let is_library = LIBRARIES.iter().any(|one| path.starts_with(one))
                && (path.is_dir() || has_library_name(path));
            let is_start = START.iter().any(|one| path == Path::new(one));
            let is_trusted = CERTIFICATES.iter().any(|one| path.starts_with(one));
            let is_own = path.starts_with(&self.directory)
                || own_process.iter().any(|one| path.starts_with(one));
            is_plain && (is_own || is_library || is_start || is_trusted || path == program)
        };
        let mut found = self.paths();
        found.retain(|path| !is_inside(path));
        found.sort();
        found.dedup();
        found
    }

    /// Calls about the network, but for a pair of sockets within the process.
    pub(crate) fn network(&self) -> Vec<String> {
        const NETWORK: [&str; 12] = [
            "socket",
            "connect",
            "bind",
            "listen",
            "accept",
            "accept4",
            "sendto",
            "sendmsg",
            "sendmmsg",
            "recvmsg",
            "recvmmsg",
            "getpeername",
        ];
        let is_it = |call: &&str| NETWORK.contains(&name_of(call));
        self.calls().filter(is_it).map(str::to_owned).collect()
    }
}

fn name_of(call: &str) -> &str {
    call.split('(').next().unwrap_or_default()
}

fn has_library_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Directories of libraries for newer CPUs need not be there.
    name.contains(".so") || path.to_string_lossy().contains("glibc-hwcaps")
}

/// A text up to its closing quote, and what is behind that.
fn until_quote(text: &str) -> (&str, &str) {
    let mut is_escaped = false;
    for (index, letter) in text.char_indices() {
        match letter {
            '"' if !is_escaped => return (&text[..index], &text[index + 1..]),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    (text, "")
}

/// Names of these tests have nothing to escape but quotes; others stay as they are, and so are
/// found outside.
fn unescaped(text: &str) -> String {
    text.replace("\\\"", "\"")
}
