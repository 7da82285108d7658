//! What is told of a template: by its recipe, by a bake of it, or by what is wrong with it.

use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_snapshots::{
    BakedTemplate, Offer, RecipeError, ResolvedRecipe, TemplateManifest, WrongRecipe,
};
use dayfly_types::{InvalidSize, MemoryMib, RunMeaning, TemplateName, Vcpus, limits};

use crate::bake::offer;

/// Of a template as its recipe would make it.
pub(crate) fn of_recipe(recipe: &ResolvedRecipe, state: BakeState) -> TemplateReport {
    let recipe = &recipe.recipe;
    TemplateReport {
        name: recipe.name.clone(),
        description: recipe.description.clone(),
        alias_of: None,
        memory: recipe.memory,
        vcpus: recipe.vcpus,
        disk_mib: recipe.disk.into(),
        run: recipe.run,
        contexts: recipe.contexts.clone(),
        state,
        is_usable: false,
        size_bytes: 0,
        baked_at: None,
        image: None,
        variants: Vec::new(),
    }
}

/// Of a bake. The sizes are those that it has. What its sandboxes offer is what its own recipe said;
/// only where that was not kept, the recipe of now stands for it.
pub(crate) fn of_bake(
    template: &BakedTemplate,
    recipe: Option<&ResolvedRecipe>,
    state: BakeState,
) -> TemplateReport {
    let manifest = template.manifest();
    let said = said(manifest, recipe);
    let machine = &manifest.machine;
    TemplateReport {
        name: manifest.name.clone(),
        description: said.description,
        alias_of: None,
        memory: machine.memory,
        vcpus: machine.vcpus,
        disk_mib: machine.disk.into(),
        run: said.run,
        contexts: said.contexts,
        state,
        is_usable: true,
        size_bytes: template.size_bytes(),
        baked_at: Some(manifest.created_at.unix_timestamp()),
        image: manifest
            .offer
            .as_ref()
            .and_then(|offer| offer.image.clone()),
        variants: Vec::new(),
    }
}

fn said(manifest: &TemplateManifest, recipe: Option<&ResolvedRecipe>) -> Offer {
    // Words of a recipe may change without a bake.
    let same = recipe.filter(|recipe| recipe.hash() == manifest.recipe.hash);
    let written = |recipe: &ResolvedRecipe| offer(&recipe.recipe, None);
    same.map(written)
        .or_else(|| manifest.offer.clone())
        .or_else(|| recipe.map(written))
        .unwrap_or_default()
}

/// Of a template whose recipe cannot be used, and that was never baked. Its sizes are the smallest
/// there are.
pub(crate) fn of_nothing(
    name: &TemplateName,
    reason: String,
) -> Result<TemplateReport, InvalidSize> {
    Ok(TemplateReport {
        name: name.clone(),
        description: String::new(),
        alias_of: None,
        memory: MemoryMib::new(limits::MEMORY_MIB_MIN)?,
        vcpus: Vcpus::new(1)?,
        disk_mib: limits::DISK_MIB_MIN,
        run: RunMeaning::default(),
        contexts: Vec::new(),
        state: BakeState::Failed { reason },
        is_usable: false,
        size_bytes: 0,
        baked_at: None,
        image: None,
        variants: Vec::new(),
    })
}

/// What is wrong with a recipe, without the line that was not understood: it may hold what is
/// nobody's business.
pub(crate) fn reason_of(error: &WrongRecipe) -> String {
    if let WrongRecipe::Text {
        path,
        source: RecipeError::Syntax(syntax),
    } = error
    {
        let (file, what) = (path.display(), syntax.message());
        return format!("the recipe {file} is no TOML: {what}");
    }
    crate::error_chain(error)
}
