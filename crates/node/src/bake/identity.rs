//! What a bake on this node would produce, to tell whether a stored template still fits.

use std::io;
use std::path::Path;

use dayfly_snapshots::{EngineIdentity, Fingerprint, HostFingerprint, ResolvedRecipe, digest};
use dayfly_vmm::Capabilities;

/// What a template must have been baked with to be used on this node, whatever its recipe.
#[must_use]
pub fn host_fingerprint(capabilities: &Capabilities, agent_hash: &str) -> HostFingerprint {
    HostFingerprint {
        engine: engine_identity(capabilities),
        agent_hash: agent_hash.to_owned(),
    }
}

/// The same of a template of this recipe as it is written now.
#[must_use]
pub fn fingerprint(
    capabilities: &Capabilities,
    recipe: &ResolvedRecipe,
    agent_hash: &str,
) -> Fingerprint {
    Fingerprint {
        host: host_fingerprint(capabilities, agent_hash),
        recipe_hash: recipe.hash(),
    }
}

/// A digest of the guest agent's program. Blocks while it reads it.
///
/// # Errors
/// When the program cannot be read.
pub fn agent_hash(program: &Path) -> io::Result<String> {
    digest::digest_path(program).map(|digest| digest.as_str().to_owned())
}

/// What a snapshot records of the engine, and a restore needs again.
#[must_use]
pub fn engine_identity(capabilities: &Capabilities) -> EngineIdentity {
    EngineIdentity {
        kind: capabilities.engine,
        version: capabilities.engine_version.clone(),
        accelerator: capabilities.accelerator,
        cpu_model: capabilities.cpu_model.clone(),
        build: capabilities.build.clone(),
    }
}
