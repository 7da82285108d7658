//! What can be asked about templates.

use std::path::PathBuf;

use clap::Subcommand;

use crate::network::args::NetworkArgs;
use crate::pairs;

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// List templates.
    #[command(visible_alias = "list")]
    Ls,
    /// Show the details of a template.
    Info {
        /// Name of the template.
        #[arg(value_name = "TEMPLATE")]
        name: String,
    },
    /// Build (bake) a template; one that is ready is left alone.
    Bake {
        /// Name of the template.
        #[arg(value_name = "TEMPLATE")]
        name: String,
        /// Bake it with this much memory in MiB, for `create --memory`; several with commas.
        #[arg(long, value_name = "MIB", value_delimiter = ',')]
        memory: Vec<u64>,
        /// Bake it with this many CPUs, for `create --cpu`.
        #[arg(long, value_name = "N")]
        cpu: Option<u64>,
        /// Wait until it is ready.
        #[arg(long)]
        wait: bool,
    },
    /// Build a template of the project from a Dockerfile.
    Build(Box<BuildArgs>),
    /// List the versions of a template of the project, with their tags.
    Versions {
        /// Name of the template.
        #[arg(value_name = "TEMPLATE")]
        name: String,
    },
    /// Let a tag mean a version: to promote it, or to go back.
    Tag {
        /// Name of the template.
        #[arg(value_name = "TEMPLATE")]
        name: String,
        /// Version id, or the tag that means it now.
        #[arg(value_name = "VERSION")]
        version: String,
        /// Tag to set.
        #[arg(value_name = "TAG")]
        tag: String,
    },
    /// Delete a template of the project, or with @VERSION one version that no tag means.
    Rm {
        /// NAME or NAME@VERSION.
        #[arg(value_name = "TEMPLATE")]
        name: String,
    },
    /// Open a shell in the sandbox in which a step failed.
    Debug {
        /// Sandbox that the failed build named.
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct BuildArgs {
    /// Directory with the files that COPY may take (build context).
    #[arg(value_name = "PATH", id = "path", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Name of the template, and its tag [default: the name of the directory, latest].
    #[arg(long, short, value_name = "NAME[:TAG]")]
    pub(crate) tag: Option<String>,
    /// Dockerfile [default: PATH/Dockerfile].
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Value of an ARG; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pairs::parse)]
    pub(crate) build_arg: Vec<(String, String)>,
    /// Stage to build [default: the last].
    #[arg(long, value_name = "STAGE")]
    pub(crate) target: Option<String>,
    /// Memory of its sandboxes and of the builder in MiB [default: 512].
    #[arg(long, value_name = "MIB")]
    pub(crate) memory: Option<u64>,
    /// CPUs of its sandboxes and of the builder [default: 1].
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u64>,
    /// Disk of its sandboxes in GiB [default: 4].
    #[arg(long, value_name = "N")]
    pub(crate) disk_gb: Option<f64>,
    /// What it is, for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Do every step anew.
    #[arg(long)]
    pub(crate) no_cache: bool,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
}
