//! What a bake on this node would produce, to tell whether a stored template still fits.

use std::io;
use std::path::Path;

use dayfly_snapshots::{EngineIdentity, Fingerprint, ResolvedRecipe, digest};
use dayfly_vmm::Capabilities;

/// What a template of this recipe must have been baked with to be used on this node.
#[must_use]
pub fn fingerprint(
    capabilities: &Capabilities,
    recipe: &ResolvedRecipe,
    agent_hash: &str,
) -> Fingerprint {
    Fingerprint {
        engine: engine_identity(capabilities),
        agent_hash: agent_hash.to_owned(),
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
    }
}
