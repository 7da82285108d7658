use std::fs;
use std::io;

use dayfly_types::GuestDefaults;

use super::BootError;

/// In the first file system, where no image reaches.
const PATH: &str = "/defaults.json";

/// Reads what the image says about commands; nothing for a template of packages.
pub(super) fn read() -> Result<GuestDefaults, BootError> {
    let text = match fs::read(PATH) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(GuestDefaults::default());
        }
        Err(error) => return Err(BootError::at("read the defaults of commands")(error)),
    };
    let read = serde_json::from_slice(&text).map_err(io::Error::from);
    read.map_err(BootError::at("understand the defaults of commands"))
}
