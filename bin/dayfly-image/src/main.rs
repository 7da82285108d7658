//! Makes a disk from the image of a container, in a jail of the node.
//!
//! It is told what to do by a file in its directory, says how far it is on its standard output, and
//! leaves a disk there. Everything that it reads besides was written by strangers, so it refuses to
//! run with any privilege. What it does is in `dayfly_oci`. Start reading at [`make`].
#![forbid(unsafe_code)]

mod describe;
mod report;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use dayfly_oci::registry::{RegistryAccess, RegistryClient, RegistryCredentials, RegistryReach};
use dayfly_oci::source::ImageOrigin;
use dayfly_oci::{Budget, ImageReference, assemble};
use dayfly_types::container_image::{ImageJob, ImageJobOrigin, MadeImage, file_names};
use dayfly_types::limits::IMAGE_DEADLINE;

use report::Reporter;

/// The jail starts the program in the directory that it shares with the node.
const DIRECTORY: &str = ".";
const EXIT_FAILED: u8 = 125;

fn main() -> ExitCode {
    let reporter = Reporter::default();
    match run(&reporter) {
        Ok(made) => {
            reporter.made(made);
            ExitCode::SUCCESS
        }
        Err(error) => {
            reporter.failed(&format!("{error:#}"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn run(reporter: &Reporter) -> Result<MadeImage> {
    if dayfly_host::privileges::is_root() {
        bail!("this program reads what strangers wrote and does not run as root");
    }
    let directory = Path::new(DIRECTORY);
    let job = std::fs::read(directory.join(file_names::JOB)).context("cannot read the job")?;
    let job: ImageJob = serde_json::from_slice(&job).context("cannot understand the job")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    // The node may be gone, and with it whoever ends this program.
    let limited = async {
        let making = make(&job, directory, reporter);
        let made = tokio::time::timeout(IMAGE_DEADLINE, making).await;
        made.context("the image took too long")?
    };
    runtime.block_on(limited)
}

async fn make(job: &ImageJob, directory: &Path, reporter: &Reporter) -> Result<MadeImage> {
    reporter.progress("finding the image", 0);
    let source = source(&job.origin, directory)?;
    let image = source.find().await.context("the image cannot be had")?;
    let total: u64 = image.layers.iter().map(|layer| layer.size).sum();
    let tell = |step: &str, bytes: u64| reporter.share(step, bytes, total);
    let aside = directory.join(file_names::LAYER);
    let budget = Budget::with_disk(job.disk_bytes);
    assemble::assemble(&source, &image, &aside, directory, budget, &tell)
        .await
        .context("no disk can be made of the image")?;
    Ok(describe::made(&image))
}

fn source(origin: &ImageJobOrigin, directory: &Path) -> Result<ImageOrigin> {
    Ok(match origin {
        ImageJobOrigin::Layout { tag } => ImageOrigin::Layout {
            path: directory.join(file_names::LAYOUT),
            tag: tag.clone(),
        },
        ImageJobOrigin::Archive { tag } => ImageOrigin::Archive {
            path: directory.join(file_names::ARCHIVE),
            name: tag.clone(),
        },
        ImageJobOrigin::Registry {
            reference,
            resolvers,
            authority,
            login,
            inside,
            networks,
        } => {
            let reference = ImageReference::parse(reference)
                .with_context(|| format!("{reference:?} is not the name of an image"))?;
            let access = RegistryAccess {
                credentials: login.as_ref().map(|login| RegistryCredentials {
                    username: login.user.clone(),
                    password: login.password.clone(),
                }),
                reach: RegistryReach {
                    allowed: inside.clone(),
                    networks: networks.clone(),
                },
                authority: authority.as_ref().map(|pem| pem.clone().into_bytes()),
                plain_loopback: false,
                resolvers: resolvers.clone(),
            };
            let client = RegistryClient::new(reference, access);
            ImageOrigin::Registry(Box::new(client.context("the registry cannot be asked")?))
        }
    })
}
