//! COPY and ADD.

use bytes::Bytes;
use dayfly_client::{ClientError, FileBody, FileContent};
use dayfly_dockerfile::{InlineFile, Step, StepWork};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::builder::{Builder, ROOT};
use crate::context::BuildContext;
use crate::error::BuildError;
use crate::keys;
use crate::owner::{self, Owner};
use crate::passage::{Passage, Passed};
use crate::place::{self, Place, Target};

const PIPE_BYTES: usize = 256 << 10;
const PIECE_BYTES: usize = 64 << 10;
const INLINE_MODE: u32 = 0o644;

/// What files are copied from.
#[derive(Debug)]
pub(crate) enum CopySource<'a> {
    Context(&'a BuildContext),
    /// A sandbox with the files of a stage or an image.
    Sandbox(&'a str),
    Inline(&'a [InlineFile]),
}

/// What a COPY says, apart from where it takes its files from.
struct Copy<'a> {
    sources: &'a [String],
    destination: &'a str,
    is_directory: bool,
    owner: Option<&'a str>,
    mode: Option<u32>,
}

fn copy_of(work: &StepWork) -> Option<Copy<'_>> {
    let StepWork::Copy {
        sources,
        destination,
        destination_is_directory,
        owner,
        mode,
        ..
    } = work
    else {
        return None;
    };
    Some(Copy {
        sources,
        destination,
        is_directory: *destination_is_directory,
        owner: owner.as_deref(),
        mode: *mode,
    })
}

/// What was taken.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Of what came from the build context.
    pub(crate) digest: Option<String>,
    /// The name of the file that the source is, if it is no directory.
    pub(crate) only: Option<String>,
}

/// Does what a COPY says.
pub(crate) async fn copy(
    builder: &Builder<'_>,
    step: &Step,
    from: &CopySource<'_>,
) -> Result<Taken, BuildError> {
    match copy_of(&step.work) {
        Some(copy) => Copying { builder, step }.all(from, &copy).await,
        None => Ok(Taken::default()),
    }
}

/// Copies a tree whole, or one file into a directory, for a mount.
pub(crate) async fn all_of(
    builder: &Builder<'_>,
    step: &Step,
    from: &CopySource<'_>,
    source: &str,
    destination: &str,
) -> Result<Taken, BuildError> {
    let sources = [source.to_owned()];
    let copy = Copy {
        sources: &sources,
        destination,
        is_directory: true,
        owner: None,
        mode: None,
    };
    Copying { builder, step }.all(from, &copy).await
}

/// A copy into a builder.
struct Copying<'a> {
    builder: &'a Builder<'a>,
    step: &'a Step,
}

/// An archive on its way.
enum Archive {
    Packed(UnixStream),
    Downloaded(FileContent),
    Whole(Vec<u8>),
}

impl Archive {
    async fn next(&mut self) -> Result<Option<Bytes>, BuildError> {
        match self {
            Self::Packed(stream) => {
                let mut piece = vec![0; PIECE_BYTES];
                let read = stream.read(&mut piece).await.map_err(unpackable)?;
                piece.truncate(read);
                Ok((read > 0).then(|| piece.into()))
            }
            Self::Downloaded(content) => {
                let what = "copy files from another stage";
                content.next().await.map_err(BuildError::call(what))
            }
            Self::Whole(bytes) if bytes.is_empty() => Ok(None),
            Self::Whole(bytes) => Ok(Some(std::mem::take(bytes).into())),
        }
    }
}

impl Copying<'_> {
    async fn all(&self, from: &CopySource<'_>, copy: &Copy<'_>) -> Result<Taken, BuildError> {
        match from {
            CopySource::Context(context) => self.of_context(context, copy).await,
            CopySource::Sandbox(sandbox) => self.of_sandbox(sandbox, copy).await,
            CopySource::Inline(files) => {
                self.inline(files, copy).await?;
                Ok(Taken::default())
            }
        }
    }

    async fn of_context(
        &self,
        context: &BuildContext,
        copy: &Copy<'_>,
    ) -> Result<Taken, BuildError> {
        let taken = keys::taken(context, self.step, copy.sources, copy.is_directory)?;
        let only = match taken.as_slice() {
            [only] if !only.is_directory => Some(place::split(&only.source).1),
            _ => None,
        };
        let target = self.target(copy, only.is_some()).await?;
        // A file that goes into a directory has its own name there.
        let name = target.name.or_else(|| only.clone());
        let packed = context.pack(taken, name, copy.mode);
        let (stream, digest) = packed.map_err(BuildError::Context)?;
        let owner = Owner::said(copy.owner, Owner::Root);
        let passage = Passage::new(None, None);
        let sent = self.send(Archive::Packed(stream), &target.directory, passage, &owner);
        let sent = sent.await;
        // Why nothing came is better known at this end.
        let digest = Some(digest.await.map_err(BuildError::Context)?);
        sent.map(|()| Taken { digest, only })
    }

    async fn target(&self, copy: &Copy<'_>, is_single: bool) -> Result<Target, BuildError> {
        let place = self.builder.place(copy.destination).await?;
        let (to, is_directory) = (copy.destination, copy.is_directory);
        place::target(self.step.line, to, is_directory, is_single, place)
    }

    async fn of_sandbox(&self, sandbox: &str, copy: &Copy<'_>) -> Result<Taken, BuildError> {
        let client = self.builder.client();
        let mut taken = Taken::default();
        for source in copy.sources {
            let path = format!("/{source}");
            if source.contains(['*', '?', '[']) {
                let what =
                    "wildcards are not matched in another stage or image; name the directory";
                return Err(BuildError::Unsupported {
                    line: self.step.line,
                    what: what.to_owned(),
                });
            }
            let is_single = match self.builder.place_in(sandbox, &path).await? {
                Place::Directory => false,
                // What a link leads to is copied, under the name of the link.
                Place::File | Place::Link => true,
                Place::Nothing => return Err(self.missing(&path)),
            };
            let target = self.target(copy, is_single).await?;
            let archive = client.download_tree(sandbox, &path, Some(ROOT)).await;
            let archive = archive.map_err(|source| self.unread(&path, source))?;
            let passage = Passage::new(target.name, copy.mode);
            let owner = Owner::said(copy.owner, Owner::Kept);
            let archive = Archive::Downloaded(archive);
            self.send(archive, &target.directory, passage, &owner)
                .await?;
            taken.only = is_single.then(|| place::split(&path).1);
        }
        Ok(taken)
    }

    fn missing(&self, path: &str) -> BuildError {
        BuildError::NoSource {
            line: self.step.line,
            path: path.to_owned(),
            place: "the stage or image that is copied from".to_owned(),
        }
    }

    fn unread(&self, path: &str, source: ClientError) -> BuildError {
        if source.api_code() == Some(dayfly_types::ErrorCode::NotFound) {
            return self.missing(path);
        }
        BuildError::Call {
            what: "read files of another stage",
            source,
        }
    }

    async fn inline(&self, files: &[InlineFile], copy: &Copy<'_>) -> Result<(), BuildError> {
        let target = self.target(copy, files.len() == 1).await?;
        let mut archive = tar::Builder::new(Vec::new());
        for file in files {
            let name = target.name.as_ref().unwrap_or(&file.name);
            let mut header = tar::Header::new_gnu();
            header.set_mode(copy.mode.unwrap_or(INLINE_MODE));
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(file.content.len() as u64);
            let added = archive.append_data(&mut header, name, file.content.as_bytes());
            added.map_err(unpackable)?;
        }
        let bytes = archive.into_inner().map_err(unpackable)?;
        let owner = Owner::said(copy.owner, Owner::Root);
        let passage = Passage::new(None, None);
        let archive = Archive::Whole(bytes);
        self.send(archive, &target.directory, passage, &owner).await
    }

    /// Unpacks an archive below a directory, and gives its members their owner and bits.
    async fn send(
        &self,
        mut archive: Archive,
        directory: &str,
        mut passage: Passage,
        owner: &Owner,
    ) -> Result<(), BuildError> {
        let made = match owner {
            Owner::Said(_) => owner::missing(self.builder, directory).await?,
            Owner::Root | Owner::Kept => Vec::new(),
        };
        let (mut writer, reader) = tokio::io::duplex(PIPE_BYTES);
        let reading = async {
            while let Some(bytes) = archive.next().await? {
                let bytes = passage.push(&bytes).map_err(unpackable)?;
                // The other end says why it went.
                if writer.write_all(&bytes).await.is_err() {
                    return Ok(());
                }
            }
            if !passage.is_whole() {
                return Err(unpackable(std::io::ErrorKind::UnexpectedEof.into()));
            }
            let _ = writer.shutdown().await;
            drop(writer);
            Ok(())
        };
        let body = FileBody::from_reader(reader, None);
        let writing = self.builder.unpack(directory, body);
        let (read, written) = tokio::join!(reading, writing);
        read.and(written)?;
        let passed: Vec<Passed> = passage.passed;
        let line = self.step.line;
        owner::correct(self.builder, line, directory, &passed, &made, owner).await
    }
}

fn unpackable(error: std::io::Error) -> BuildError {
    BuildError::Template {
        reason: format!("files cannot be copied: {error}"),
    }
}
