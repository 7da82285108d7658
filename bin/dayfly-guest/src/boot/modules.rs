use std::fs::{self, File};
use std::path::Path;

use rustix::io::Errno;

use super::{BootError, console, text_of};

const DIRECTORY: &str = "/modules";

/// Loads the kernel modules that `/modules/order` names, in that order. Their files go
/// afterwards: they sit in memory that every snapshot would carry.
pub(super) fn load_all() -> Result<usize, BootError> {
    let order = match fs::read_to_string(Path::new(DIRECTORY).join("order")) {
        Ok(order) => order,
        // A kernel with everything built in needs no modules.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(BootError::at("read the order of modules")(error)),
    };
    let mut count = 0;
    for name in order.lines().map(str::trim).filter(|name| !name.is_empty()) {
        let path = Path::new(DIRECTORY).join(name);
        match load(&path).map_err(BootError::at(format!("load module {name}"))) {
            Ok(()) => count += 1,
            // Most are for what users may run. A guest that misses one which it needs itself stops
            // where it needs it, behind this line.
            Err(error) => console::say(&text_of(&error)),
        }
    }
    let _ = fs::remove_dir_all(DIRECTORY);
    Ok(count)
}

fn load(path: &Path) -> std::io::Result<()> {
    let file = File::open(path)?;
    match rustix::system::finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
