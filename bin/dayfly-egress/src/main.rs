//! The egress process: one for each node, without any privilege. It is handed the sockets that
//! connections of sandboxes arrive at, and dials from the namespace that it is started in.
//!
//! What it does is in `dayfly_egress`. Here it is made harmless first: it refuses to be root, gives
//! up what can be given up, and filters its own system calls, so that whoever takes it over finds
//! connections and nothing else. All files are opened before that.
#![forbid(unsafe_code)]

mod filter;
mod posture;

use std::io::Write as _;
use std::net::{SocketAddr, SocketAddrV4};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use dayfly_egress::server::{self, Options, PacketListener};
use dayfly_types::LogFormat;
use dayfly_types::egress::InternalNetworks;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Names of hosts are a sandbox's own business: the DNS library writes them even into its errors.
const LOG_FILTER: &str = "info,hickory_net=off,hickory_proto=off,hickory_resolver=off";
const WORKERS_MAX: usize = 8;
const EXIT_FAILED: u8 = 125;

/// Lets sandboxes out as far as their policies say. Started by the node.
#[derive(Debug, Parser)]
#[command(name = "dayfly-egress", version)]
struct Arguments {
    /// Where to listen for the node.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// DNS server to use; may be given more than once.
    #[arg(long, value_name = "IP:PORT")]
    resolver: Vec<SocketAddr>,
    /// What one sandbox may send in a second, and as much again receive. Default: no limit.
    #[arg(long, value_name = "BYTES")]
    bytes_per_second: Option<NonZeroU64>,
    /// What of private space is open, and to which projects, as JSON. Default: nothing.
    #[arg(long, value_name = "JSON", value_parser = internal_networks, default_value = "[]")]
    internal_networks: InternalNetworks,
    /// HTTP proxy that connections to public addresses go through. Default: none.
    #[arg(long, value_name = "IP:PORT")]
    proxy: Option<SocketAddrV4>,
    /// What a line of the log is: `text` or `json`.
    #[arg(long, value_name = "FORMAT", default_value = LogFormat::Text.as_str())]
    log_format: LogFormat,
}

fn internal_networks(text: &str) -> Result<InternalNetworks, serde_json::Error> {
    serde_json::from_str(text)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let format = arguments.log_format;
    start_log(format);
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain, once, where it ends.
            match format {
                LogFormat::Text => {
                    let _ = writeln!(std::io::stderr(), "error: {error:#}");
                }
                LogFormat::Json => tracing::error!(error = format!("{error:#}"), "it ends"),
            }
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_env("DAYFLY_LOG").unwrap_or_else(|_| LOG_FILTER.into());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        // A line that cannot be written is lost; saying so would end the process.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .init(),
    }
}

fn run(arguments: Arguments) -> Result<()> {
    posture::refuse_privilege()?;
    let listener = PacketListener::bind(&arguments.socket)
        .with_context(|| format!("cannot listen at {}", arguments.socket.display()))?;
    // Asked before the filter, because the answer is in files.
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    posture::give_up_the_rest()?;
    filter::install().context("cannot filter system calls")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers.min(WORKERS_MAX))
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let stop = stop_on_signal().context("cannot listen for signals")?;
        let listener = PacketListener::watch(listener).context("cannot watch the socket")?;
        let options = Options {
            resolvers: arguments.resolver,
            bytes_per_second: arguments.bytes_per_second,
            internal_networks: arguments.internal_networks,
            proxy: arguments.proxy,
        };
        tracing::info!(workers, "ready");
        server::serve(listener, options, stop).await;
        tracing::info!("stopped");
        Ok(())
    })
}

/// As the first process of its namespace it gets no signal that it does not ask for.
fn stop_on_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // A log that has grown to its limit must not end the process; what is written then is lost.
    let mut log_is_full = signal(SignalKind::from_raw(libc::SIGXFSZ))?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = log_is_full.recv() => {}
            }
        }
        stopping.cancel();
    });
    Ok(stop)
}
