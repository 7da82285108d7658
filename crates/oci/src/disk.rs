//! Images that lie on this host: named files, in a directory or in a tar.

use std::io::{self, Read};

use dayfly_types::limits::IMAGE_DOCUMENT_BYTES_MAX;

use crate::digest::{Digest, HashingReader};
use crate::document::{Descent, Descriptor, Image, InvalidDocument, Step};

/// Why an image on this host cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadImageError {
    #[error("the image cannot be opened")]
    Open {
        #[source]
        source: io::Error,
    },
    #[error("the image has no file {name:?}")]
    Missing { name: String },
    #[error("{name:?} of the image is no regular file")]
    NotRegular { name: String },
    #[error("{name:?} of the image cannot be read")]
    Read {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("{name:?} of the image has {found} bytes and should have {wanted}")]
    OtherSize {
        name: String,
        wanted: u64,
        found: u64,
    },
    #[error("{name:?} of the image has the digest {found} and should have {wanted}")]
    OtherContent {
        name: String,
        wanted: Digest,
        found: Digest,
    },
    #[error("the directory is no OCI layout of version 1.0.0")]
    NotALayout,
    #[error("the file is no tar of an image; a compressed one has to be decompressed before")]
    NotAnArchive,
    #[error("the archive has {name:?} twice")]
    Twice { name: String },
    #[error("the archive has too many members, or one with a name that is too long")]
    TooMany,
    #[error("the archive ends within {name:?}")]
    Short { name: String },
    #[error("there is no image {wanted:?}; there is {there}")]
    NoSuchName { wanted: String, there: String },
    #[error("there is not exactly one image; say which one: {there}")]
    Ambiguous { there: String },
    #[error("{name:?} is not how the config of an image is named: by its digest")]
    ConfigName { name: String },
    #[error("a document of the image is refused")]
    Document(#[from] InvalidDocument),
}

/// A file of an image that was opened, and how long it is.
pub(crate) struct OpenBlob {
    pub(crate) content: Box<dyn Read + Send>,
    pub(crate) size: u64,
}

/// Where the files of an image are. A name has no part that leads elsewhere.
pub(crate) trait ImageFiles {
    fn open(&self, name: &str) -> Result<OpenBlob, ReadImageError>;
}

/// A document whose digest nobody has said.
pub(crate) fn read_document(files: &dyn ImageFiles, name: &str) -> Result<Vec<u8>, ReadImageError> {
    let OpenBlob { content, size } = files.open(name)?;
    if size > IMAGE_DOCUMENT_BYTES_MAX {
        return Err(InvalidDocument::TooLong.into());
    }
    let mut bytes = Vec::new();
    // It may have grown since.
    let mut content = content.take(IMAGE_DOCUMENT_BYTES_MAX + 1);
    let read = content.read_to_end(&mut bytes);
    read.map_err(|source| ReadImageError::Read {
        name: name.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > IMAGE_DOCUMENT_BYTES_MAX {
        return Err(InvalidDocument::TooLong.into());
    }
    Ok(bytes)
}

/// A document that must have this digest.
pub(crate) fn read_verified(
    files: &dyn ImageFiles,
    name: &str,
    wanted: &Digest,
) -> Result<Vec<u8>, ReadImageError> {
    let bytes = read_document(files, name)?;
    let found = Digest::of(&bytes);
    if found != *wanted {
        return Err(ReadImageError::OtherContent {
            name: name.to_owned(),
            wanted: wanted.clone(),
            found,
        });
    }
    Ok(bytes)
}

/// Hashes what is too long to be held.
pub(crate) fn digest_of(files: &dyn ImageFiles, name: &str) -> Result<Digest, ReadImageError> {
    let mut content = HashingReader::new(files.open(name)?.content);
    let copied = io::copy(&mut content, &mut io::sink());
    copied.map_err(|source| ReadImageError::Read {
        name: name.to_owned(),
        source,
    })?;
    Ok(content.finish().0)
}

/// Where a layout has the bytes of this digest.
pub(crate) fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn read_described(
    files: &dyn ImageFiles,
    descriptor: &Descriptor,
) -> Result<Vec<u8>, ReadImageError> {
    let name = blob_name(&descriptor.digest);
    let bytes = read_verified(files, &name, &descriptor.digest)?;
    let found = bytes.len() as u64;
    if found != descriptor.size {
        let wanted = descriptor.size;
        return Err(ReadImageError::OtherSize {
            name,
            wanted,
            found,
        });
    }
    Ok(bytes)
}

/// Follows an entry of a layout's index to its image.
pub(crate) fn follow(files: &dyn ImageFiles, mut at: Descriptor) -> Result<Image, ReadImageError> {
    let mut descent = Descent::default();
    loop {
        let document = read_described(files, &at)?;
        match descent.step(&document, &at.media_type)? {
            Step::Down(next) => at = next,
            Step::Arrived(manifest) => {
                let config = read_described(files, &manifest.config)?;
                return Ok(manifest.complete(at.digest, &config)?);
            }
        }
    }
}
