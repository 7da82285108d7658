//! The command line of the bench. No logic.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Measures the product beside the bare engine, in one run.
#[derive(Debug, Parser)]
#[command(name = "dayfly-bench", bin_name = "dayflyd bench")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// From the create call to the response of the first `true`.
    Create(BenchArguments),
    /// From a call to a hibernated sandbox to the response of its first `true`.
    Wake(BenchArguments),
    /// From the call of `true` on a warm sandbox to its response.
    Exec(BenchArguments),
    /// How long a fork stops its parent, when its children respond, and what memory they add.
    Fork(ForkBenchArguments),
    /// Many creates at once, each to the response of its first `true`.
    Burst(BurstBenchArguments),
}

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Uses the daemon that runs on this directory, or starts one.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// How many of each kind.
    #[arg(long, default_value_t = 20)]
    pub(crate) n: usize,
    #[arg(long, default_value = "base")]
    pub(crate) template: String,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForkBenchArguments {
    /// Uses the daemon that runs on this directory, or starts one.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// How many children: in each round so many one after the other, then so many at once.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) children: u64,
    /// How much memory a program in the parent holds, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 300)]
    pub(crate) session_mib: u64,
    /// How many parents, one after the other.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) rounds: u64,
    #[arg(long, default_value = "base")]
    pub(crate) template: String,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BurstBenchArguments {
    /// Uses the daemon that runs on this directory, or starts one.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// How many creates a burst has.
    #[arg(long, default_value_t = 50)]
    pub(crate) n: usize,
    /// How many of them are under way at most; with fewer than --n, each is deleted when it is done.
    #[arg(long, value_name = "K", default_value_t = 50)]
    pub(crate) at_once: usize,
    /// Begins so many in a second, and deletes each when it is done.
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<f64>,
    /// How many bursts of each kind, in turns.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) rounds: usize,
    #[arg(long, default_value = "base")]
    pub(crate) template: String,
    #[arg(long)]
    pub(crate) json: bool,
}
