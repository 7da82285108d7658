//! What stands between guests and the internet: the library in this process, or the program.

use std::fs::{self, File};
use std::net::SocketAddrV4;
use std::num::NonZeroU64;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use dayfly_egress::server::{self, Options, PacketListener};
use dayfly_host::netns;
use dayfly_types::egress::InternalNetworks;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::internet::Internet;
use super::name_server;

/// The program's tests include this suite, and there the program is known.
pub(crate) const PROGRAM: Option<&str> = option_env!("CARGO_BIN_EXE_dayfly-egress");
const CONTROL: &str = "control.sock";
/// Nobody.
pub(crate) const UID: u32 = 61_234;

/// What an operator decides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    pub(crate) rate: Option<NonZeroU64>,
    pub(crate) internal: InternalNetworks,
    pub(crate) proxy: Option<SocketAddrV4>,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) control: PathBuf,
    directory: PathBuf,
    namespace: PathBuf,
    given: Given,
    running: Running,
}

#[derive(Debug)]
enum Running {
    Here(Option<Runtime>, CancellationToken),
    Program(Child),
}

impl Proxy {
    pub(crate) fn start(internet: &Internet, root: &Path, given: Given) -> Self {
        let directory = root.join("run");
        fs::create_dir(&directory).unwrap();
        // The program's user must get through here, and no further.
        fs::set_permissions(root, fs::Permissions::from_mode(0o711)).unwrap();
        chown(&directory, Some(UID), Some(UID)).unwrap();
        let control = directory.join(CONTROL);
        let namespace = internet.egress.clone();
        Self {
            running: start(&namespace, &directory, &given),
            control,
            directory,
            namespace,
            given,
        }
    }

    /// The program, where it is one.
    pub(crate) fn program(&mut self) -> Option<&mut Child> {
        match &mut self.running {
            Running::Here(..) => None,
            Running::Program(child) => Some(child),
        }
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        if let Running::Here(runtime, _) = &mut self.running
            && let Some(runtime) = runtime.take()
        {
            runtime.shutdown_background();
        }
        if let Some(program) = self.program() {
            let _ = program.kill();
            let _ = program.wait();
        }
    }

    /// Starts it once more, as a node does when it is gone.
    pub(crate) fn start_again(&mut self) {
        self.running = start(&self.namespace, &self.directory, &self.given);
    }
}

fn start(namespace: &Path, directory: &Path, given: &Given) -> Running {
    match PROGRAM {
        None => start_here(namespace, &directory.join(CONTROL), given),
        Some(program) => Running::Program(start_program(program, namespace, directory, given)),
    }
}

fn start_here(namespace: &Path, control: &Path, given: &Given) -> Running {
    let listener = PacketListener::bind(control).unwrap();
    let runtime = netns::in_namespace(namespace, || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).enable_all().build().unwrap()
    });
    let runtime = runtime.unwrap();
    let options = Options {
        resolvers: vec![name_server::ADDRESS.parse().unwrap()],
        bytes_per_second: given.rate,
        internal_networks: given.internal.clone(),
        proxy: given.proxy,
    };
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    runtime.spawn(async move {
        let listener = PacketListener::watch(listener).unwrap();
        server::serve(listener, options, stopping).await;
    });
    Running::Here(Some(runtime), stop)
}

fn start_program(
    program: &'static str,
    namespace: &Path,
    directory: &Path,
    given: &Given,
) -> Child {
    let log = File::create(directory.join("log")).unwrap();
    let control = directory.join(CONTROL);
    let rate = given.rate.map(|rate| format!("--bytes-per-second={rate}"));
    let internal = serde_json::to_string(&given.internal).unwrap();
    let proxy = given.proxy.map(|proxy| format!("--proxy={proxy}"));
    let child = netns::in_namespace(namespace, move || {
        Command::new(program)
            .args(["--resolver", name_server::ADDRESS, "--socket"])
            .arg(control)
            .args(rate)
            .args(["--internal-networks", &internal])
            .args(proxy)
            .env_clear()
            .stderr(log)
            .uid(UID)
            .gid(UID)
            .spawn()
            .unwrap()
    });
    child.unwrap()
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Running::Here(_, stop) = &self.running {
            stop.cancel();
        }
        self.kill();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.directory.join("log"));
            println!("{}", log.unwrap_or_default());
        }
    }
}
