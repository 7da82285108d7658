//! Templates of projects.

use dayfly_api::{
    CreateTemplate, EnsureImage, ImageTemplate, SetTemplateTag, TemplateVersion,
    TemplateVersionList,
};

use reqwest::Url;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;
use crate::retry;

impl Client {
    /// Makes sure that an image can be used, and reads how far it is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn ensure_image(&self, request: &EnsureImage) -> Result<ImageTemplate, ClientError> {
        let url = self.address(&["v1", "templates", "images"]);
        let answer = retry::repeat(|| {
            let call = self.http.post(url.clone()).json(request);
            self.call(call, limits::STATE_DEADLINE)
        })
        .await?;
        decode(&answer)
    }

    /// Orders a new version of a template of the project. It is not repeated by itself: a second one
    /// would be another version.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_template(
        &self,
        request: &CreateTemplate,
    ) -> Result<TemplateVersion, ClientError> {
        let url = self.address(&["v1", "templates"]);
        let call = self.http.post(url).json(request);
        let answer = self.call(call, limits::STATE_DEADLINE).await?;
        decode(&answer)
    }

    /// Reads all versions of a template of the project, newest first.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn list_template_versions(
        &self,
        name: &str,
    ) -> Result<Vec<TemplateVersion>, ClientError> {
        let url = self.template_part(name, &["versions"])?;
        let list: TemplateVersionList = self.get_json(url).await?;
        Ok(list.items)
    }

    /// Reads one version, by its id or by a tag.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn get_template_version(
        &self,
        name: &str,
        version: &str,
    ) -> Result<TemplateVersion, ClientError> {
        self.get_json(self.template_part(name, &["versions", version])?)
            .await
    }

    /// Lets a tag mean a version.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is no such version.
    pub async fn set_template_tag(
        &self,
        name: &str,
        tag: &str,
        version: &str,
    ) -> Result<TemplateVersion, ClientError> {
        let url = self.template_part(name, &["tags", tag])?;
        let request = SetTemplateTag {
            version: version.to_owned(),
        };
        let answer = retry::repeat(|| {
            let call = self.http.put(url.clone()).json(&request);
            self.call(call, limits::STATE_DEADLINE)
        })
        .await?;
        decode(&answer)
    }

    /// Deletes a tag. One that is gone already is a success.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_template_tag(&self, name: &str, tag: &str) -> Result<(), ClientError> {
        self.delete(self.template_part(name, &["tags", tag])?).await
    }

    /// Deletes a version that no tag means.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `wrong_state` while a tag means it.
    pub async fn delete_template_version(
        &self,
        name: &str,
        version: &str,
    ) -> Result<(), ClientError> {
        self.delete(self.template_part(name, &["versions", version])?)
            .await
    }

    /// Deletes a template of the project with all its versions.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_template(&self, name: &str) -> Result<(), ClientError> {
        self.delete(self.template_address(name)?).await
    }

    /// A part of a template; parts that are no plain words are escaped, so they name nothing else.
    fn template_part(&self, name: &str, parts: &[&str]) -> Result<Url, ClientError> {
        let mut address = self.template_address(name)?;
        if let Ok(mut segments) = address.path_segments_mut() {
            segments.extend(parts);
        }
        Ok(address)
    }
}
