//! Has a disk made from the image of a container.
//!
//! What is in an image was written by strangers, and whoever asks for it may be one. So neither the
//! registry's answers nor the layers are read by this process: a program without any privilege does
//! that, in a jail of its own, in the namespace from which sandboxes leave the host. It sees the one
//! directory that it writes the disk into. When it has ended, its disk is taken as what it is: bytes
//! that nobody but a guest will read.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dayfly_host::cgroup::{Cgroup, CgroupError};
use dayfly_host::files::disk_space;
use dayfly_host::jail::{self, BindMount, JailCalls, JailSpec, MountAccess, ResourceLimits};
use dayfly_host::{CgroupLimits, CgroupTree};
use dayfly_types::container_image::{ImageJob, ImageJobOrigin, ImageReport, MadeImage, file_names};
use dayfly_types::egress::InternalNetworks;
use dayfly_types::limits::{
    ENGINE_START_DEADLINE, IMAGE_DEADLINE, IMAGE_REPORT_BYTES_MAX, IMAGE_UNPACKED_BYTES_MAX,
    IMAGE_USE_BYTES_MAX, TEARDOWN_STEP_DEADLINE,
};
use dayfly_types::{ProjectId, RegistryHost};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

use crate::base_disk;
use crate::container_lend;
use crate::files;
use crate::image_address::ImageAddress;
use crate::progress::ProgressReporter;
use crate::recipe::ContainerImage;
use crate::registries::Registries;
use crate::registry_files::{RegistryFileError, RegistryFiles};

/// Where the program finds the directory that it shares with this process.
pub const RUN_INSIDE: &str = "/run";
/// The name of its control group among those of the slots, which are numbers.
pub const IMAGES_GROUP: &str = "images";
const MEMORY_BYTES: u64 = 2 << 30;
const CPU_PERCENT: u32 = 100;
const THREADS_MAX: u32 = 64;
const OPEN_FILES: u64 = 256;
/// What is left to sandboxes.
const DISK_RESERVE_BYTES: u64 = 4 << 30;
/// Inodes and directories beside the contents.
const DISK_BYTES_MAX: u64 = IMAGE_UNPACKED_BYTES_MAX + (4 << 30);

/// Why there is no disk.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    #[error("cannot prepare {path}")]
    Prepare {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot copy the image")]
    Lend(#[source] io::Error),
    #[error("the registry cannot be asked as the settings say")]
    Registry(#[source] RegistryFileError),
    #[error("cannot make the control group of the program")]
    Group(#[source] CgroupError),
    #[error("cannot start the program that reads images")]
    Launch(#[source] jail::JailLaunchError),
    #[error("cannot hear from the program that reads images")]
    Hear(#[source] io::Error),
    #[error("the image {image} cannot be used: {reason}")]
    Refused { image: String, reason: String },
    #[error(
        "the program that reads images ended without a result, perhaps for want of memory or disk; \
         it said: {said:?}"
    )]
    Ended { said: String },
    #[error("the image took longer than {0:?}")]
    TimedOut(Duration),
    #[error("cannot take the disk")]
    Take(#[source] io::Error),
    #[error("this server could not do its part; its operator finds the reason in its log")]
    OfServer,
    #[error("images of containers are not read on this host")]
    NotHere,
    #[error("the work was stopped")]
    Stopped,
}

impl ContainerError {
    /// What a project learns: what is wrong with its image, and nothing of the operator's settings
    /// and files.
    fn told_to(self, project: &ProjectId, image: &ImageAddress) -> Self {
        match self {
            Self::Refused { .. } | Self::Ended { .. } | Self::TimedOut(_) | Self::Stopped => self,
            Self::Prepare { .. }
            | Self::Lend(_)
            | Self::Registry(_)
            | Self::Group(_)
            | Self::Launch(_)
            | Self::Hear(_)
            | Self::Take(_)
            | Self::OfServer
            | Self::NotHere => {
                let error = dayfly_types::error_chain(&self);
                tracing::error!(%project, %image, error, "cannot make the disk of an image");
                Self::OfServer
            }
        }
    }
}

/// How images are read on this host.
#[derive(Debug, Clone)]
pub struct ContainerImages {
    pub cgroups: CgroupTree,
    pub jail_program: PathBuf,
    /// What the program sees as `/`, with the program in it.
    pub root: PathBuf,
    pub program: PathBuf,
    /// User and group that nothing else uses.
    pub uid: u32,
    /// The network namespace that it asks registries from.
    pub netns: PathBuf,
    pub resolvers: Vec<SocketAddr>,
    /// Who signs in to which registry.
    pub registries: Registries,
    /// What projects may reach inside.
    pub internal: InternalNetworks,
}

impl ContainerImages {
    /// Makes the disk of an image in `target`, a directory, and gives the names of its files there.
    /// `work` is an empty directory that the caller removes.
    ///
    /// # Errors
    /// [`ContainerError`]
    ///
    /// # Cancel safety
    /// Dropping the future ends the program in the background.
    pub(crate) async fn make(
        &self,
        image: &ContainerImage,
        work: &Path,
        target: &Path,
        progress: &ProgressReporter,
    ) -> Result<(MadeImage, Vec<String>), ContainerError> {
        let made = self.make_any(image, work, target, progress).await;
        match &image.project {
            None => made,
            Some(project) => made.map_err(|error| error.told_to(project, &image.image)),
        }
    }

    async fn make_any(
        &self,
        image: &ContainerImage,
        work: &Path,
        target: &Path,
        progress: &ProgressReporter,
    ) -> Result<(MadeImage, Vec<String>), ContainerError> {
        let (here, asked, place) = (self.clone(), image.clone(), work.to_owned());
        let prepared = blocking(move || here.prepare(&asked, &place)).await?;
        let (sender, receiver) = pipe::pipe().map_err(ContainerError::Hear)?;
        let sender = sender.into_blocking_fd().map_err(ContainerError::Hear)?;
        let limit = ENGINE_START_DEADLINE;
        let launched = jail::launch(&self.jail_program, &prepared.spec, sender, limit).await;
        let heard = match launched {
            Ok(_) => tokio::time::timeout(IMAGE_DEADLINE, hear(receiver, &image.image, progress))
                .await
                .unwrap_or(Err(ContainerError::TimedOut(IMAGE_DEADLINE))),
            Err(error) => Err(ContainerError::Launch(error)),
        };
        let (from, to) = (work.to_owned(), target.to_owned());
        blocking(move || {
            // Nothing of it may run when its disk is looked at.
            prepared.end()?;
            let made = heard?;
            let taken = base_disk::take(&from, &to, DISK_BYTES_MAX);
            Ok((made, taken.map_err(ContainerError::Take)?))
        })
        .await
    }

    fn prepare(&self, image: &ContainerImage, work: &Path) -> Result<Prepared, ContainerError> {
        end_group(&self.cgroups).map_err(ContainerError::Group)?;
        let wrap = |source| ContainerError::Prepare {
            path: work.to_owned(),
            source,
        };
        let room = room(work).map_err(wrap)?;
        let lent = container_lend::lend(&image.image, work, self.uid, room);
        let room = lent.map_err(ContainerError::Lend)?.min(DISK_BYTES_MAX);
        let job = self.job(image, room).map_err(ContainerError::Registry)?;
        let job = serde_json::to_vec(&job).map_err(io::Error::from);
        let job = job.map_err(wrap)?;
        self.write_job(&job, work).map_err(wrap)?;
        let limits = CgroupLimits {
            memory_bytes: MEMORY_BYTES,
            cpu_quota_percent: CPU_PERCENT,
            pids_max: THREADS_MAX,
        };
        let group = self.cgroups.create(IMAGES_GROUP, &limits);
        let group = group.map_err(ContainerError::Group)?;
        let spec = self.spec(work, room, group.procs_paths());
        Ok(Prepared {
            spec,
            group: Some(group),
        })
    }

    /// The program may have the password of a registry from it, and nobody else.
    fn write_job(&self, job: &[u8], work: &Path) -> io::Result<()> {
        let path = work.join(file_names::JOB);
        files::write_new(&path, job, 0o400)?;
        chown(&path, Some(self.uid), Some(self.uid))?;
        // Last: from now on others may put things into it.
        chown(work, Some(self.uid), Some(self.uid))
    }

    fn job(&self, image: &ContainerImage, disk_bytes: u64) -> Result<ImageJob, RegistryFileError> {
        let origin = match &image.image {
            ImageAddress::Registry(reference) => {
                self.registry(reference, image.project.as_ref())?
            }
            ImageAddress::Layout { tag, .. } => ImageJobOrigin::Layout { tag: tag.clone() },
            ImageAddress::Archive { tag, .. } => ImageJobOrigin::Archive { tag: tag.clone() },
        };
        Ok(ImageJob { origin, disk_bytes })
    }

    /// The registry of a recipe may be inside, because the operator wrote it there. Which addresses
    /// inside can be reached at all is a matter of the operator's settings and of the kernel's rules,
    /// which know no projects: so for a project only what was opened to it is dialled.
    fn registry(
        &self,
        reference: &str,
        project: Option<&ProjectId>,
    ) -> Result<ImageJobOrigin, RegistryFileError> {
        let registry = RegistryHost::of_image(reference).ok();
        let files = match &registry {
            Some(registry) => RegistryFiles::read(&self.registries, registry, project)?,
            // The program says what is wrong with it.
            None => RegistryFiles::default(),
        };
        let inside = registry.filter(|_| project.is_none());
        let inside = inside.map(|registry| (registry.host().to_owned(), registry.port()));
        let networks = project.map(|project| self.internal.of(project));
        Ok(ImageJobOrigin::Registry {
            reference: reference.to_owned(),
            resolvers: self.resolvers.clone(),
            authority: files.authority,
            login: files.login,
            inside: inside.into_iter().collect(),
            networks: networks.unwrap_or_default(),
        })
    }

    fn spec(&self, work: &Path, room: u64, cgroup_procs: Vec<PathBuf>) -> JailSpec {
        JailSpec {
            uid: self.uid,
            gid: self.uid,
            cgroup_procs,
            netns: self.netns.clone(),
            hostname: IMAGES_GROUP.to_owned(),
            root: self.root.clone(),
            mounts: vec![BindMount {
                source: work.to_owned(),
                target: PathBuf::from(RUN_INSIDE),
                access: MountAccess::ReadWrite,
            }],
            devices: Vec::new(),
            limits: ResourceLimits {
                open_files: OPEN_FILES,
                locked_memory_bytes: 64 << 10,
                file_size_bytes: Some(room),
            },
            // A bake can be repeated; a sandbox cannot.
            out_of_memory_adjustment: 500,
            calls: JailCalls::Image,
            program: self.program.clone(),
            arguments: Vec::new(),
            environment: std::collections::BTreeMap::new(),
            working_directory: PathBuf::from(RUN_INSIDE),
        }
    }
}

/// What an image may take of the disk that sandboxes write to.
fn room(work: &Path) -> io::Result<u64> {
    let available = disk_space(work)?.available_bytes;
    Ok(available.saturating_sub(DISK_RESERVE_BYTES) / 10 * 9)
}

/// A program that may run. Dropping it ends it.
#[derive(Debug)]
struct Prepared {
    spec: JailSpec,
    group: Option<Cgroup>,
}

impl Prepared {
    fn end(mut self) -> Result<(), ContainerError> {
        match self.group.take() {
            Some(group) => end(&group).map_err(ContainerError::Group),
            None => Ok(()),
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            // Ending waits for the kernel. The next program, and the next start, end it too.
            std::thread::spawn(move || end(&group));
        }
    }
}

fn end(group: &Cgroup) -> Result<(), CgroupError> {
    group.kill_all(TEARDOWN_STEP_DEADLINE)?;
    group.remove(TEARDOWN_STEP_DEADLINE)
}

/// Ends what an earlier process of this host left, if it left anything.
///
/// # Errors
/// [`CgroupError`]
pub fn end_group(cgroups: &CgroupTree) -> Result<(), CgroupError> {
    if !cgroups.list()?.iter().any(|name| name == IMAGES_GROUP) {
        return Ok(());
    }
    end(&cgroups.open_existing(IMAGES_GROUP)?)
}

/// Listens until the program has closed its output, which is when it ends.
async fn hear(
    receiver: pipe::Receiver,
    image: &ImageAddress,
    progress: &ProgressReporter,
) -> Result<MadeImage, ContainerError> {
    let mut lines = BufReader::new(receiver.take(IMAGE_REPORT_BYTES_MAX)).split(b'\n');
    let mut said = String::new();
    while let Some(line) = lines.next_segment().await.map_err(ContainerError::Hear)? {
        match serde_json::from_slice(&line) {
            Ok(ImageReport::Progress { step, percent }) => {
                progress.report(&plain(&step), percent.min(100));
            }
            Ok(ImageReport::Made(made)) if made.is_short() => return Ok(*made),
            Ok(ImageReport::Made(_)) => {
                return Err(ContainerError::Refused {
                    image: image.to_string(),
                    reason: format!(
                        "it has more than {IMAGE_USE_BYTES_MAX} bytes of variables, words and layers"
                    ),
                });
            }
            Ok(ImageReport::Failed { reason }) => {
                return Err(ContainerError::Refused {
                    image: image.to_string(),
                    reason: plain(&reason),
                });
            }
            Err(_) => said = plain(&String::from_utf8_lossy(&line)),
        }
    }
    Err(ContainerError::Ended { said })
}

/// What the program says goes to people's terminals.
fn plain(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().take(2000).map(shown).collect()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ContainerError> + Send + 'static,
) -> Result<T, ContainerError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or(Err(ContainerError::Stopped))
}
