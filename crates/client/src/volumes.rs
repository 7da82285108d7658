//! Volumes.

use dayfly_api::{CreateVolume, GrowVolume, Volume, VolumeList};

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;
use crate::retry;

impl Client {
    /// Makes a volume. One that is there with the same size is a success.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `already_exists` when it is there with another size.
    pub async fn create_volume(&self, request: &CreateVolume) -> Result<Volume, ClientError> {
        let url = self.address(&["v1", "volumes"]);
        let answer = retry::repeat(|| {
            let call = self.http.post(url.clone()).json(request);
            self.call(call, limits::STATE_DEADLINE)
        })
        .await?;
        decode(&answer)
    }

    /// Makes a volume larger.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn grow_volume(
        &self,
        name: &str,
        request: &GrowVolume,
    ) -> Result<Volume, ClientError> {
        let url = self.volume_address(name)?;
        let answer = retry::repeat(|| {
            let call = self.http.patch(url.clone()).json(request);
            self.call(call, limits::STATE_DEADLINE)
        })
        .await?;
        decode(&answer)
    }

    /// Reads all volumes of the key's project, by name.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list_volumes(&self) -> Result<Vec<Volume>, ClientError> {
        let list: VolumeList = self.get_json(self.address(&["v1", "volumes"])).await?;
        Ok(list.items)
    }

    /// Reads one volume.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn get_volume(&self, name: &str) -> Result<Volume, ClientError> {
        self.get_json(self.volume_address(name)?).await
    }

    /// Deletes a volume with what is on it. One that is gone already is a success.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `volume_busy` while a sandbox has it.
    pub async fn delete_volume(&self, name: &str) -> Result<(), ClientError> {
        self.delete(self.volume_address(name)?).await
    }
}
