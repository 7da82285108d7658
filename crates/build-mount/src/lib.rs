//! Builds of templates in the server: each is a client of the API in the same process, with the key of
//! whoever asked for it.
//!
//! A build knows only the client, and the API knows only that something runs builds. This joins them,
//! for the daemon and for the tests of the API alike. A build reads the files that came with it and
//! takes digests of them, so each has a thread of its own.
#![forbid(unsafe_code)]

mod told;

use std::sync::Arc;

use dayfly_build::{Build, BuildContext, BuildError, BuildWish, Built, ContextFile};
use dayfly_client::{ApiKey, Client};
use dayfly_control::MakeBuilder;
use dayfly_control::build::{
    BuildFailure, BuildOrder, BuildTold, BuiltVersion, NewBuild, TemplateBuilder, UploadedContext,
};
use dayfly_types::error_chain_once;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

const STOPPED: &str = "the build stopped; build again, finished steps are kept";

/// Runs builds with clients of one API.
struct InProcessBuilder(Client);

impl TemplateBuilder for InProcessBuilder {
    fn build(
        &self,
        order: BuildOrder,
        told: BuildTold,
    ) -> BoxFuture<'static, Result<BuiltVersion, BuildFailure>> {
        let client = client_of(&self.0, &order);
        Box::pin(async move {
            let client = client?;
            let cancelled = CancellationToken::new();
            let watched = cancelled.clone();
            let runtime = Handle::current();
            // Ends the build when nobody waits for it any more.
            let _guard = cancelled.drop_guard();
            let running = tokio::task::spawn_blocking(move || {
                runtime.block_on(async {
                    tokio::select! {
                        biased;
                        () = watched.cancelled() => Err(failure(STOPPED.to_owned())),
                        outcome = run(&client, order.wish, order.context, told) => outcome,
                    }
                })
            });
            running
                .await
                .unwrap_or_else(|_| Err(failure(STOPPED.to_owned())))
        })
    }
}

/// The client of whoever asked.
fn client_of(client: &Client, order: &BuildOrder) -> Result<Client, BuildFailure> {
    let unusable = |error: &dyn std::error::Error| failure(error_chain_once(error));
    let key = ApiKey::parse(order.key.reveal()).map_err(|error| unusable(&error))?;
    let url = client.url().to_owned();
    let client = client.for_caller(&url, &key);
    let client = client.map_err(|error| unusable(&error))?;
    Ok(client.on_behalf_of(order.client))
}

async fn run(
    client: &Client,
    wanted: NewBuild,
    uploaded: UploadedContext,
    mut told: BuildTold,
) -> Result<BuiltVersion, BuildFailure> {
    let files = uploaded.files.into_iter().map(|file| ContextFile {
        path: file.path,
        offset: file.offset,
        length: file.length,
        mode: file.mode,
    });
    let context = BuildContext::uploaded(uploaded.content, files.collect());
    let context = context.map_err(|error| failed(BuildError::Context(error)))?;
    let wish = wish(wanted);
    let mut tell = |event| told(told::event(event));
    let build = Build::new(client, &wish, &context, &mut tell);
    match build.run().await {
        Ok(built) => Ok(version(client, &wish, built).await),
        Err(error) => Err(failed(error)),
    }
}

fn wish(wanted: NewBuild) -> BuildWish {
    BuildWish {
        name: wanted.name,
        tag: wanted.tag,
        description: wanted.description,
        dockerfile: wanted.dockerfile,
        target: wanted.target,
        arguments: wanted.arguments,
        memory_mb: wanted.memory_mb,
        cpu: wanted.cpu,
        disk_gb: wanted.disk_gb,
        network: wanted.network,
        is_fresh: wanted.is_fresh,
    }
}

async fn version(client: &Client, wish: &BuildWish, built: Built) -> BuiltVersion {
    // How many bytes it has is known when it is baked, which it is.
    let baked = client.get_template_version(&wish.name, &built.version.id);
    let bytes = baked
        .await
        .map_or(built.version.size_bytes, |baked| baked.size_bytes);
    BuiltVersion {
        version: built.version.id,
        steps: told::number(built.steps),
        cached: told::number(built.cached),
        disk_mb: built.version.disk_mb,
        bytes,
    }
}

fn failed(error: BuildError) -> BuildFailure {
    let text = error_chain_once(&error);
    let mut failure = failure(text);
    if let BuildError::Step(step) = error {
        failure.step = Some(Box::new(told::failed_step(*step)));
    }
    failure
}

fn failure(error: String) -> BuildFailure {
    BuildFailure { error, step: None }
}

/// Makes it of the API that it uses.
#[must_use]
pub fn mount() -> MakeBuilder {
    Box::new(|router| {
        let client = Client::in_process(router);
        #[expect(
            clippy::expect_used,
            reason = "no certificate is read and no address is given"
        )]
        let client = client.expect("a client without connections can be made");
        Arc::new(InProcessBuilder(client))
    })
}
