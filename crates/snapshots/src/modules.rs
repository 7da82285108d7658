//! Finds the kernel modules that a guest needs, in an order in which they can be loaded.
//!
//! The kernel package carries no list of dependencies (that is made when it is installed), but
//! each module names its own in its `.modinfo` section, as `depends=a,b`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::program::{Program, ProgramError};

/// What a guest needs before it can mount its root and talk to its host.
const NEEDED: [&str; 6] = [
    "virtio_mmio",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "overlay",
    "erofs",
];
/// What users run inside needs: engines of containers, with bridges, address translation and rules
/// of either kind, disks in files, tunnels. Nobody in a guest can load a module later, because its
/// files are not there. A kernel that lacks one still makes a guest.
const USEFUL: [&str; 54] = [
    // Disks and programs of other kinds.
    "loop",
    "fuse",
    "squashfs",
    "binfmt_misc",
    // Networks of containers.
    "tun",
    "dummy",
    "veth",
    "bridge",
    "br_netfilter",
    "macvlan",
    "ipvlan",
    "vxlan",
    // Rules as `nft` makes them.
    "nf_tables",
    "nft_chain_nat",
    "nft_ct",
    "nft_nat",
    "nft_masq",
    "nft_redir",
    "nft_reject_inet",
    "nft_fib_inet",
    "nft_limit",
    "nft_log",
    "nft_numgen",
    "nft_hash",
    "nf_conntrack_netlink",
    // Rules as `iptables` makes them, over either of its back ends.
    "nft_compat",
    "ip_tables",
    "iptable_filter",
    "iptable_nat",
    "iptable_mangle",
    "iptable_raw",
    "ip6_tables",
    "ip6table_filter",
    "ip6table_nat",
    "ip6table_mangle",
    "ipt_REJECT",
    "ip6t_REJECT",
    "xt_addrtype",
    "xt_comment",
    "xt_connmark",
    "xt_conntrack",
    "xt_limit",
    "xt_LOG",
    "xt_mark",
    "xt_MASQUERADE",
    "xt_multiport",
    "xt_nat",
    "xt_owner",
    "xt_recent",
    "xt_REDIRECT",
    "xt_statistic",
    "xt_tcpudp",
    "xt_TCPMSS",
    "xt_u32",
];
const DECOMPRESS_LIMIT: Duration = Duration::from_secs(60);
/// Depth of dependencies; a circle would be deeper.
const DEPTH_MAX: usize = 32;

/// Why the modules could not be collected.
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    #[error("cannot search {path} for modules")]
    Search {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the kernel has no module {name}, and does not have it built in")]
    Missing { name: String },
    #[error("the modules' dependencies go in a circle at {name}")]
    Circle { name: String },
    #[error("cannot copy the module {name}")]
    Copy {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot decompress the module {name}")]
    Decompress {
        name: String,
        #[source]
        source: ProgramError,
    },
}

/// Everything that is asked for, which is part of what a kernel's entry in the cache is named by.
pub(crate) fn wanted() -> Vec<&'static str> {
    NEEDED.into_iter().chain(USEFUL).collect()
}

/// The modules of one kernel, before they are unpacked.
#[derive(Debug)]
struct ModuleTree {
    /// By name with underscores, as modules name each other.
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// Unpacks the wanted modules and what they depend on from `tree` (`lib/modules/VERSION`) into
/// `target` as `NAME.ko`. Returns the file names in loading order.
pub(crate) async fn collect(tree: &Path, target: &Path) -> Result<Vec<String>, ModulesError> {
    let modules = ModuleTree::read(tree)?;
    let mut order = Vec::new();
    for name in NEEDED {
        add(&modules, name, target, &mut order).await?;
    }
    for name in USEFUL {
        match add(&modules, name, target, &mut order).await {
            Err(ModulesError::Missing { name: missing }) => {
                tracing::warn!(
                    name,
                    missing,
                    "the kernel lacks a module that some programs use"
                );
            }
            other => other?,
        }
    }
    Ok(order.into_iter().map(|name| format!("{name}.ko")).collect())
}

/// One module on its way into the order: its dependencies come first.
struct Pending {
    name: String,
    dependencies: Vec<String>,
}

/// Adds a module behind its dependencies. A stack of our own, because async functions do not call
/// themselves.
async fn add(
    modules: &ModuleTree,
    wanted: &str,
    target: &Path,
    order: &mut Vec<String>,
) -> Result<(), ModulesError> {
    let mut stack: Vec<Pending> = Vec::new();
    let mut next = Some(wanted.to_owned());
    loop {
        if let Some(name) = next.take()
            && !order.contains(&name)
            && !modules.built_in.contains(&name)
        {
            if stack.len() >= DEPTH_MAX {
                return Err(ModulesError::Circle { name });
            }
            match unpack(modules, &name, target).await {
                Ok(dependencies) => stack.push(Pending { name, dependencies }),
                Err(error) => {
                    // What waited for it is of no use without it.
                    for waiting in &stack {
                        let _ = std::fs::remove_file(target.join(format!("{}.ko", waiting.name)));
                    }
                    return Err(error);
                }
            }
        }
        let Some(top) = stack.last_mut() else {
            return Ok(());
        };
        next = top.dependencies.pop();
        if next.is_none()
            && let Some(done) = stack.pop()
        {
            order.push(done.name);
        }
    }
}

/// Unpacks one module and reads what it depends on.
async fn unpack(
    modules: &ModuleTree,
    name: &str,
    target: &Path,
) -> Result<Vec<String>, ModulesError> {
    let missing = || ModulesError::Missing {
        name: name.to_owned(),
    };
    let source = modules.files.get(name).ok_or_else(missing)?;
    let copy = |source| ModulesError::Copy {
        name: name.to_owned(),
        source,
    };
    let extension = source
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or("");
    let packed = target.join(format!("{name}.ko.{extension}"));
    let plain = target.join(format!("{name}.ko"));
    let decompressor = match extension {
        "xz" => Some("xz"),
        "zst" => Some("zstd"),
        "gz" => Some("gzip"),
        _ => None,
    };
    match decompressor {
        None => std::fs::copy(source, &plain).map(drop).map_err(copy)?,
        Some(program) => {
            std::fs::copy(source, &packed).map_err(copy)?;
            // Each of the three names its output by cutting the suffix.
            Program::new(program, DECOMPRESS_LIMIT)
                .arguments(["-d", "-q", "-f"])
                .argument(&packed)
                .run_quietly()
                .await
                .map_err(|source| ModulesError::Decompress {
                    name: name.to_owned(),
                    source,
                })?;
            // Only zstd keeps what it has unpacked.
            let _ = std::fs::remove_file(&packed);
        }
    }
    std::fs::read(&plain)
        .map(|bytes| dependencies(&bytes))
        .map_err(copy)
}

/// The names after `depends=` in a module's `.modinfo`. Entries there are ended by zero bytes.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(start) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = &module[start + KEY.len()..];
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&value[..end]);
    text.split(',')
        .filter(|name| !name.is_empty())
        .map(normal_name)
        .collect()
}

/// Modules call each other with underscores, whatever their files are called.
fn normal_name(name: &str) -> String {
    name.replace('-', "_")
}

impl ModuleTree {
    fn read(tree: &Path) -> Result<Self, ModulesError> {
        let mut files = BTreeMap::new();
        let mut waiting = vec![tree.join("kernel")];
        while let Some(directory) = waiting.pop() {
            let wrap = |source| ModulesError::Search {
                path: directory.clone(),
                source,
            };
            for entry in std::fs::read_dir(&directory).map_err(wrap)? {
                let entry = entry.map_err(wrap)?;
                if entry.file_type().map_err(wrap)?.is_dir() {
                    waiting.push(entry.path());
                } else if let Some(name) = module_name(&entry.path()) {
                    files.insert(name, entry.path());
                }
            }
        }
        let built_in = std::fs::read_to_string(tree.join("modules.builtin")).unwrap_or_default();
        let built_in = built_in
            .lines()
            .filter_map(|line| module_name(Path::new(line)))
            .collect();
        Ok(Self { files, built_in })
    }
}

/// `a/virtio-rng.ko.xz` is the module `virtio_rng`.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (stem, rest) = name.split_once(".ko")?;
    (rest.is_empty() || rest.starts_with('.')).then(|| normal_name(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of modules: file name and what it depends on.
    fn tree(modules: &[(&str, &str)], built_in: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let kernel = directory.path().join("kernel/drivers");
        std::fs::create_dir_all(&kernel).unwrap();
        for (name, depends) in modules {
            let content = format!("\x7fELF\0license=GPL\0depends={depends}\0name=x\0");
            std::fs::write(kernel.join(name), content).unwrap();
        }
        std::fs::write(directory.path().join("modules.builtin"), built_in).unwrap();
        directory
    }

    const PLAIN: [(&str, &str); 8] = [
        ("virtio_mmio.ko", ""),
        ("virtio_blk.ko", ""),
        ("virtio_net.ko", "net_failover,failover"),
        ("net_failover.ko", "failover"),
        ("failover.ko", ""),
        ("virtio-rng.ko", ""),
        ("erofs.ko", "libcrc32c"),
        ("libcrc32c.ko", ""),
    ];

    #[tokio::test]
    async fn dependencies_come_first_and_built_in_ones_are_left_out() {
        let tree = tree(&PLAIN, "kernel/fs/overlayfs/overlay.ko\n");
        let target = tempfile::tempdir().unwrap();
        let order = collect(tree.path(), target.path()).await.unwrap();
        assert_eq!(
            order,
            [
                "virtio_mmio.ko",
                "virtio_blk.ko",
                "failover.ko",
                "net_failover.ko",
                "virtio_net.ko",
                "virtio_rng.ko",
                "libcrc32c.ko",
                "erofs.ko"
            ]
        );
        assert!(order.iter().all(|name| target.path().join(name).exists()));
    }

    #[tokio::test]
    async fn what_is_only_useful_is_taken_where_the_kernel_has_it() {
        let mut modules = PLAIN.to_vec();
        // What `veth` depends on is missing, and with it `veth` is left out.
        modules.extend([("tun.ko", ""), ("veth.ko", "none"), ("loop.ko", "")]);
        let tree = tree(&modules, "kernel/fs/overlayfs/overlay.ko\n");
        let target = tempfile::tempdir().unwrap();
        let order = collect(tree.path(), target.path()).await.unwrap();
        assert_eq!(
            order.last_chunk(),
            Some(&["loop.ko", "tun.ko"].map(str::to_owned))
        );
        assert!(!target.path().join("veth.ko").exists());
    }

    #[tokio::test]
    async fn compressed_modules_are_unpacked() {
        let tree = tree(&PLAIN, "kernel/fs/overlayfs/overlay.ko\n");
        let kernel = tree.path().join("kernel/drivers");
        let module = kernel.join("erofs.ko");
        Program::new("xz", DECOMPRESS_LIMIT)
            .argument(module)
            .run_quietly()
            .await
            .unwrap();
        let target = tempfile::tempdir().unwrap();
        let order = collect(tree.path(), target.path()).await.unwrap();
        assert_eq!(order.last().map(String::as_str), Some("erofs.ko"));
        let content = std::fs::read(target.path().join("erofs.ko")).unwrap();
        assert!(content.starts_with(b"\x7fELF"));
        assert!(!target.path().join("erofs.ko.xz").exists());
    }

    #[tokio::test]
    async fn missing_module_and_circle_are_named() {
        let target = tempfile::tempdir().unwrap();
        let error = collect(tree(&PLAIN, "").path(), target.path())
            .await
            .unwrap_err();
        assert!(error.to_string().contains("overlay"), "{error}");
        let circle = [("virtio_mmio.ko", "a"), ("a.ko", "b"), ("b.ko", "a")];
        let error = collect(tree(&circle, "").path(), target.path())
            .await
            .unwrap_err();
        assert!(matches!(error, ModulesError::Circle { .. }), "{error}");
    }
}
