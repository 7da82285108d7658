//! How images of containers are read on this host.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dayfly_host::CgroupTree;
use dayfly_host::engine_root::{EngineRootSpec, RootFile, ensure_engine_root};
use dayfly_installation::{DataDirectory, Instance, sibling_program};
use dayfly_snapshots::ContainerImages;
use dayfly_snapshots::container::{RUN_INSIDE, end_group};

use crate::args::RunArguments;
use crate::egress::Egress;

const PROGRAM: &str = "dayfly-image";
/// Where distributions keep the certificates of public authorities.
const AUTHORITY_FILES: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

/// Ends what an earlier process left of it, and gets its root ready.
pub(crate) fn open(
    arguments: &RunArguments,
    directory: &DataDirectory,
    instance: &Instance,
    cgroups: CgroupTree,
    egress: &Egress,
) -> Result<ContainerImages> {
    end_group(&cgroups).context("cannot end what was left of an image")?;
    Ok(ContainerImages {
        cgroups,
        jail_program: sibling_program("dayfly-jail")?,
        root: root(&directory.node().join("image-roots"))?,
        program: sibling_program(PROGRAM)?,
        uid: instance.images_uid(),
        netns: egress.netns().to_owned(),
        resolvers: egress.resolvers().to_vec(),
        registries: arguments.registry.clone(),
        internal: egress.internal_networks().clone(),
    })
}

/// What this host believes of registries, the program believes too.
fn authorities() -> Vec<RootFile> {
    let found = AUTHORITY_FILES
        .iter()
        .find(|path| Path::new(path).is_file());
    found
        .map(|path| RootFile::same(*path))
        .into_iter()
        .collect()
}

/// A directory with the program, what it is linked with, and nothing else.
fn root(store: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(store).context("cannot make the directory of roots")?;
    let spec = EngineRootSpec {
        label: PROGRAM.to_owned(),
        program: sibling_program(PROGRAM)?,
        files: authorities(),
        mount_directories: vec![PathBuf::from(RUN_INSIDE)],
        mount_files: Vec::new(),
    };
    let made = ensure_engine_root(&spec, store).context("cannot make the root of images")?;
    Ok(made.path)
}
