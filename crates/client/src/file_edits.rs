//! What can be done to files of a guest beside reading and writing them.

use dayfly_api::{ChangeList, ChangeMode, CreateFileLink, FileLink, MakeDirectory, MoveFile};
use serde::Serialize;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;

/// How to remove something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoveOptions {
    /// Also everything below.
    pub recursive: bool,
    /// Whose permissions count; the server's default when absent.
    pub user: Option<String>,
}

impl Client {
    /// Makes a directory.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `already_exists` when something is there and parents are not
    /// made.
    pub async fn make_directory(
        &self,
        id: &str,
        request: &MakeDirectory,
    ) -> Result<(), ClientError> {
        self.edit_files(id, "mkdir", request).await
    }

    /// Gives a file or a directory another path.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `already_exists` when something is there that may not be
    /// replaced.
    pub async fn move_file(&self, id: &str, request: &MoveFile) -> Result<(), ClientError> {
        self.edit_files(id, "move", request).await
    }

    /// Changes permission bits.
    ///
    /// # Errors
    /// [`ClientError::Api`].
    pub async fn change_mode(&self, id: &str, request: &ChangeMode) -> Result<(), ClientError> {
        self.edit_files(id, "chmod", request).await
    }

    /// Removes a file or a directory.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when it is not there.
    pub async fn remove_file(
        &self,
        id: &str,
        path: &str,
        options: &RemoveOptions,
    ) -> Result<(), ClientError> {
        let mut url = self.file_address(id, &["fs"], path, options.user.as_deref())?;
        if options.recursive {
            url.query_pairs_mut().append_pair("recursive", "true");
        }
        // Not repeated: the second answer would be that it is not there.
        self.call(self.http.delete(url), limits::CALL_DEADLINE)
            .await?;
        Ok(())
    }

    /// Lists what differs on a sandbox's disk below a directory, since it began or since one of
    /// its snapshots.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when the sandbox or the snapshot is not there.
    pub async fn list_changes(
        &self,
        id: &str,
        path: &str,
        since: Option<&str>,
    ) -> Result<ChangeList, ClientError> {
        let mut url = self.file_address(id, &["fs", "changes"], path, None)?;
        if let Some(since) = since {
            url.query_pairs_mut().append_pair("since", since);
        }
        self.get_json(url).await
    }

    /// Makes a link to a file. Never sent twice: a second link would stay that nobody knows of.
    ///
    /// # Errors
    /// [`ClientError`]; after [`ClientError::Timeout`] and [`ClientError::Lost`] there may be a
    /// link.
    pub async fn create_file_link(
        &self,
        id: &str,
        request: &CreateFileLink,
    ) -> Result<FileLink, ClientError> {
        let url = self.sandbox_address(id, &["fs", "links"])?;
        let call = self.http.post(url).json(request);
        decode(&self.call(call, limits::CALL_DEADLINE).await?)
    }

    /// Ends a link to a file that this key made.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn revoke_file_link(&self, id: &str, link: &str) -> Result<(), ClientError> {
        // Escaped as a whole, except that dots would name another object.
        let link = link.replace('.', "");
        self.delete(self.sandbox_address(id, &["fs", "links", &link])?)
            .await
    }

    async fn edit_files(
        &self,
        id: &str,
        what: &str,
        request: &(impl Serialize + Sync),
    ) -> Result<(), ClientError> {
        let url = self.sandbox_address(id, &["fs", what])?;
        self.call(self.http.post(url).json(request), limits::CALL_DEADLINE)
            .await?;
        Ok(())
    }
}
