//! The templates of the node in memory.

use dayfly_node_api::{
    BakeState, NodeError, NodeTemplates, TemplateReport, VariantReport, VariantRequest,
};
use dayfly_types::{OrderedTemplate, SandboxId, TemplateName};

use super::fake_node::{FakeNode, template};

impl FakeNode {
    pub(crate) fn template_names(&self) -> Vec<String> {
        self.with(|inner| {
            let names = inner.templates.iter().map(|one| one.name.to_string());
            names.collect()
        })
    }

    /// What a sandbox was made from, in the node's own words.
    pub(crate) fn template_of(&self, sandbox: &str) -> String {
        let id = SandboxId::parse(sandbox).unwrap();
        self.sandbox_now(&id).unwrap().template.to_string()
    }
}

impl NodeTemplates for FakeNode {
    async fn templates(&self) -> Result<Vec<TemplateReport>, NodeError> {
        self.count_list();
        Ok(self.with(|inner| inner.templates.clone()))
    }

    async fn find_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        let found = self.with(|inner| {
            let mut templates = inner.templates.iter();
            templates.find(|one| one.name == *name).cloned()
        });
        found.ok_or_else(|| NodeError::not_found("no such template"))
    }

    async fn ensure_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        self.with(|inner| {
            let found = inner.templates.iter_mut().find(|one| one.name == *name);
            let template = found.ok_or_else(|| NodeError::not_found("no such template"))?;
            if template.state == BakeState::NotBaked {
                template.state = BakeState::Waiting;
            }
            Ok(template.clone())
        })
    }

    async fn order_template(&self, wanted: OrderedTemplate) -> Result<TemplateReport, NodeError> {
        self.with(|inner| {
            let name = wanted.name.as_str();
            if let Some(found) = inner.templates.iter().find(|one| one.name == wanted.name) {
                return Ok(found.clone());
            }
            let mut made = template(name, BakeState::Ready);
            made.memory = wanted.memory;
            made.vcpus = wanted.vcpus;
            inner.templates.push(made.clone());
            Ok(made)
        })
    }

    async fn forget_template(&self, name: &TemplateName) -> Result<(), NodeError> {
        self.with(|inner| inner.templates.retain(|one| one.name != *name));
        Ok(())
    }

    async fn ensure_variant(
        &self,
        name: &TemplateName,
        wanted: VariantRequest,
    ) -> Result<VariantReport, NodeError> {
        self.order_variant(name, wanted)
    }

    async fn renew_template(&self, name: &TemplateName) -> Result<TemplateReport, NodeError> {
        self.with(|inner| {
            let found = inner.templates.iter_mut().find(|one| one.name == *name);
            match found {
                Some(template) => {
                    template.state = BakeState::Waiting;
                    Ok(template.clone())
                }
                // As with a recipe that was written since.
                None if name.as_str() == "fresh" => {
                    let found = template("fresh", BakeState::Waiting);
                    inner.templates.push(found.clone());
                    Ok(found)
                }
                None => Err(NodeError::not_found("no such template")),
            }
        })
    }
}
