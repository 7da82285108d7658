//! What is to be tried.

use std::io::Read as _;
use std::path::Path;

use dayfly_types::limits::FORK_CHILDREN_MAX;

use crate::failure::CommandError;
use crate::sandbox::args::ExploreArgs;

/// Longer files are no lists of commands.
const FILE_BYTES_MAX: u64 = 4 << 20;
const HINT: &str = "give --candidate COMMAND, again for each, or --candidates FILE, one in a line";

/// The candidates of the flags, then those of the file. Empty lines of the file are none.
pub(super) fn read(args: &ExploreArgs) -> Result<Vec<String>, CommandError> {
    let mut all = args.candidate.clone();
    if let Some(path) = &args.candidates {
        let text = read_file(path)?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        all.extend(lines.map(str::to_owned));
    }
    let wrong = match all.len() {
        0 => "there is nothing to explore".to_owned(),
        count if count > FORK_CHILDREN_MAX => {
            format!("{count} candidates are more than one fork has: {FORK_CHILDREN_MAX}")
        }
        _ if all.iter().any(|candidate| candidate.trim().is_empty()) => {
            "a candidate is empty".to_owned()
        }
        _ => return Ok(all),
    };
    Err(CommandError::Usage {
        what: wrong,
        hint: HINT,
    })
}

/// `-` is standard input.
fn read_file(path: &Path) -> Result<String, CommandError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        let input = std::io::stdin().lock();
        input.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
    };
    let failed = |source| {
        let what = format!("cannot read the candidates of {}", path.display());
        CommandError::local(what, source)
    };
    if read.map_err(failed)? as u64 > FILE_BYTES_MAX {
        let what = format!("{} is longer than {FILE_BYTES_MAX} bytes", path.display());
        return Err(CommandError::Usage { what, hint: HINT });
    }
    Ok(text)
}
