//! Taking everything of an installation from its host. All of it may be repeated: the name that
//! things go by is removed last.

use std::fs;
use std::io;

use anyhow::{Context, Result, ensure};
use dayfly_host::files::remove_tree;
use dayfly_host::leftovers::{InstancePlaces, Leftover, find_leftovers};
use dayfly_host::net::{Uplink, remove_egress_namespace};
use dayfly_host::process::Pidfd;
use dayfly_host::{CgroupTree, netns};
use dayfly_installation::DataDirectory;
use dayfly_types::limits::TEARDOWN_STEP_DEADLINE;
use rustix::mount::{UnmountFlags, unmount};

use crate::settings;

/// What a daemon keeps in its directory, in the order in which it goes.
const OURS: [&str; 10] = [
    "run",
    "node",
    "control",
    "recipes",
    "admin.key.next",
    "admin.key",
    "daemon.json",
    "instance.json",
    "processes",
    "lock",
];

/// An installation that goes.
pub(super) struct Removal {
    pub(super) directory: DataDirectory,
    pub(super) instance: String,
}

impl Removal {
    /// Gives what is left over of it, and what stays in the directory because it is not ours.
    pub(super) fn run(&self) -> Result<(Vec<Leftover>, Vec<String>)> {
        self.end_processes()?;
        self.remove_network()?;
        self.let_go()?;
        let stays = self.remove_files()?;
        let left = find_leftovers(&self.places()).context("cannot see what is left over")?;
        Ok((left, stays))
    }

    fn places(&self) -> InstancePlaces {
        InstancePlaces {
            instance: self.instance.clone(),
            data_directory: self.directory.root().to_owned(),
            netns_directory: self.directory.node().join("netns"),
            slots_directory: self.directory.node().join("slots"),
        }
    }

    /// Processes by control group, then whoever else has its root in the directory.
    fn end_processes(&self) -> Result<()> {
        let limit = TEARDOWN_STEP_DEADLINE;
        let tree = CgroupTree::find(&self.instance).context("cannot find the control groups")?;
        for name in tree.list().context("cannot list the control groups")? {
            let group = tree
                .open_existing(&name)
                .context("cannot open a control group")?;
            let ended = group.kill_all(limit).and_then(|()| group.remove(limit));
            ended.with_context(|| format!("cannot end what runs in control group {name}"))?;
        }
        for item in find_leftovers(&self.places()).context("cannot see what runs")? {
            if let Leftover::Process { identity, .. } = item
                && let Ok(process) = Pidfd::open(identity)
            {
                process.kill().context("cannot end a process")?;
                let pid = identity.pid;
                ensure!(process.wait_blocking(limit), "process {pid} does not end");
            }
        }
        tree.remove(limit)
            .context("cannot remove the control group of the installation")
    }

    /// The link to the host with its rules, and the namespace that traffic left from.
    fn remove_network(&self) -> Result<()> {
        let path = self.directory.node().join("egress/netns");
        if let Some(theirs) = self.uplink_of_somebody_else() {
            let removed = remove_egress_namespace(&path, &self.instance, &theirs);
            removed.context("cannot remove the rules of the egress namespace")?;
        }
        // Rules may have outlived the link, which goes with its namespace; without a program that
        // loads rules there are none.
        let thorough = remove_egress_namespace(&path, &self.instance, &Uplink::Nat);
        let removed =
            thorough.or_else(|_| remove_egress_namespace(&path, &self.instance, &Uplink::None));
        removed.context("cannot remove the network of the installation")
    }

    /// A namespace that the operator made, when the settings of this host still name it.
    fn uplink_of_somebody_else(&self) -> Option<Uplink> {
        let found = settings::resolve(&[env!("CARGO_PKG_NAME").into()])
            .ok()?
            .arguments;
        let is_ours = found.data_dir.canonicalize().ok()? == self.directory.root();
        let uplink = Uplink::from(found.egress_uplink);
        (is_ours && matches!(uplink, Uplink::Namespace(_))).then_some(uplink)
    }

    /// What is mounted below the directory, which nobody uses any more.
    fn let_go(&self) -> Result<()> {
        for item in find_leftovers(&self.places()).context("cannot see what is mounted")? {
            match item {
                Leftover::Mount { mount_point } => {
                    let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
                    let unmounted = unmount(&mount_point, flags);
                    unmounted
                        .with_context(|| format!("cannot unmount {}", mount_point.display()))?;
                }
                Leftover::NetworkNamespace { path, .. } => {
                    netns::remove(&path).context("cannot remove a network namespace")?;
                }
                Leftover::Process { .. }
                | Leftover::Cgroup { .. }
                | Leftover::SlotDirectory { .. } => {}
            }
        }
        Ok(())
    }

    fn remove_files(&self) -> Result<Vec<String>> {
        let root = self.directory.root();
        for name in OURS {
            remove_tree(&root.join(name)).with_context(|| format!("cannot remove {name}"))?;
        }
        let mut stays = Vec::new();
        for item in fs::read_dir(root).context("cannot list the data directory")? {
            let path = item.context("cannot list the data directory")?.path();
            stays.push(format!("{}: it is not dayflyd's", path.display()));
        }
        if stays.is_empty() {
            match fs::remove_dir(root) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    stays.push(format!(
                        "{}: a file system is mounted there",
                        root.display()
                    ));
                }
                Err(error) => return Err(error).context("cannot remove the data directory"),
            }
        }
        Ok(stays)
    }
}
