//! Which libraries a program loads, asked of its own loader.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::EngineRootError;
use super::elf::{Linkage, linkage};

/// Where a loader looks without being told. What is elsewhere is found through its cache.
const DEFAULT_DIRECTORIES: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// All libraries that `files` load when `program`'s loader loads them, the loader included.
pub(super) fn libraries_of(
    program: &Path,
    files: &[PathBuf],
) -> Result<BTreeSet<PathBuf>, EngineRootError> {
    let Linkage::Dynamic { interpreter } = read_linkage(program)? else {
        return Ok(BTreeSet::new());
    };
    let mut libraries = BTreeSet::from([interpreter.clone()]);
    for file in files {
        match read_linkage(file)? {
            Linkage::NotElf | Linkage::Static => {}
            Linkage::Library | Linkage::Dynamic { .. } => {
                libraries.extend(list(&interpreter, file)?);
            }
        }
    }
    if libraries
        .iter()
        .any(|library| !is_in_default_directory(library))
    {
        libraries.insert(PathBuf::from(LOADER_CACHE));
    }
    Ok(libraries)
}

fn read_linkage(path: &Path) -> Result<Linkage, EngineRootError> {
    linkage(path).map_err(|source| EngineRootError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Lists without running anything of the file itself.
fn list(interpreter: &Path, file: &Path) -> Result<Vec<PathBuf>, EngineRootError> {
    let failed = |source| EngineRootError::ListLibraries {
        path: file.to_owned(),
        source,
    };
    let output = Command::new(interpreter)
        .arg("--list")
        .arg(file)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(library) = text
        .lines()
        .find_map(|line| line.trim().strip_suffix("=> not found"))
    {
        let library = library.trim().to_owned();
        return Err(EngineRootError::MissingLibrary {
            path: file.to_owned(),
            library,
        });
    }
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(failed(io::Error::other(words)));
    }
    Ok(text.lines().filter_map(parse_line).collect())
}

/// `name => /path (0x...)` or `/path (0x...)`; what the kernel brings along has no path.
fn parse_line(line: &str) -> Option<PathBuf> {
    let line = line.split_once("=>").map_or(line, |(_, path)| path).trim();
    let (path, _address) = line.rsplit_once(" (")?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

fn is_in_default_directory(library: &Path) -> bool {
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    library.parent().is_some_and(|directory| {
        DEFAULT_DIRECTORIES.iter().any(|default| {
            let default = Path::new(default);
            directory == default || directory == default.join(&multiarch)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_loader_are_understood() {
        let parse = |line| parse_line(line).map(|path| path.display().to_string());
        assert_eq!(parse("\tlinux-vdso.so.1 (0x00007ffc)"), None);
        assert_eq!(
            parse("\tlibc.so.6 => /lib/libc.so.6 (0x7f)").unwrap(),
            "/lib/libc.so.6"
        );
        assert_eq!(parse("\t/lib64/ld.so.2 (0x7f)").unwrap(), "/lib64/ld.so.2");
        assert_eq!(parse("\tstatically linked"), None);
    }
}
