//! The API of a running daemon, for who may read its data directory.

use std::io;

use dayfly_client::{ApiKey, Client, ClientConfig, ClientError, InvalidConfig};

use crate::data_directory::{DataDirectory, DataDirectoryError};

/// What the API says to a key that it does not let in.
const UNAUTHORIZED: &str = "unauthorized";

/// Why the daemon of a directory cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum AdminClientError {
    #[error(transparent)]
    Directory(#[from] DataDirectoryError),
    #[error("cannot read the administrator's key")]
    ReadKey { source: io::Error },
    #[error("the administrator's key is damaged")]
    DamagedKey { source: InvalidConfig },
    #[error("cannot make a client")]
    Client { source: InvalidConfig },
    #[error("the daemon does not answer")]
    Ask { source: ClientError },
}

/// A client of the daemon that runs on this directory, with the administrator's key.
///
/// # Errors
/// [`AdminClientError`]; nobody was asked.
pub fn admin_client(directory: &DataDirectory) -> Result<Client, AdminClientError> {
    let key = std::fs::read_to_string(directory.admin_key())
        .map_err(|source| AdminClientError::ReadKey { source })?;
    client_with(directory, &key)
}

fn client_with(directory: &DataDirectory, key: &str) -> Result<Client, AdminClientError> {
    let running = directory.require_running()?;
    let key = ApiKey::parse(key).map_err(|source| AdminClientError::DamagedKey { source })?;
    let config = ClientConfig {
        url: format!("http://{}", running.listen),
        key: Some(key),
    };
    Client::new(config).map_err(|source| AdminClientError::Client { source })
}

/// Whether the daemon that runs on this directory lets a key in.
///
/// # Errors
/// [`AdminClientError`] when it does not answer.
pub async fn is_key_accepted(
    directory: &DataDirectory,
    key: &str,
) -> Result<bool, AdminClientError> {
    match client_with(directory, key)?.node().await {
        Ok(_) => Ok(true),
        Err(ClientError::Api(error)) if error.code == UNAUTHORIZED => Ok(false),
        Err(source) => Err(AdminClientError::Ask { source }),
    }
}
