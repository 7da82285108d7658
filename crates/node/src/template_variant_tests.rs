//! Templates in other sizes: who may have one, how long it is used, and what is told of it.

use dayfly_node_api::{VariantReport, VariantRequest};
use dayfly_types::{MemoryMib, TemplateSize, Vcpus, limits};

use super::*;

fn size(memory: u64) -> TemplateSize {
    TemplateSize {
        memory: MemoryMib::new(memory).unwrap(),
        vcpus: Vcpus::new(1).unwrap(),
    }
}

fn request(memory: u64, by: Option<&str>) -> VariantRequest {
    VariantRequest {
        size: size(memory),
        by: by.map(|project| ProjectId::parse(project).unwrap()),
        is_awaited: true,
        renew: false,
    }
}

impl Kitchen {
    fn order(
        &self,
        list: &TemplateList,
        memory: u64,
        by: Option<&str>,
    ) -> Result<VariantReport, TemplateUnavailable> {
        let catalog = self.catalog();
        let recipe = catalog.get(&name("own")).unwrap();
        list.order_variant(recipe, &request(memory, by))
    }

    /// Takes the next order and bakes it.
    fn bake_next(&self, list: &TemplateList) -> BakedTemplate {
        let target = list.take_order(&BTreeSet::new()).unwrap();
        let (template, recipe) = self.baked_as(&target, list.ordered_by(&target));
        assert!(list.begin(&target, &recipe));
        list.set_baked(&template, Some(&recipe));
        template
    }
}

fn target(memory: u64) -> BakeTarget {
    BakeTarget::variant(&name("own"), size(memory))
}

#[test]
fn a_variant_is_baked_once_and_the_first_to_use_it_waited() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "shell");
    let list = kitchen.ready();
    let ordered = kitchen.order(&list, 256, Some("p")).unwrap();
    assert_eq!(
        (ordered.state, ordered.is_usable),
        (BakeState::Waiting, false)
    );
    kitchen.order(&list, 256, Some("q")).unwrap();
    assert_eq!(list.use_variant(&target(256)), None);
    let template = kitchen.bake_next(&list);
    assert_eq!(
        list.take_order(&BTreeSet::new()),
        None,
        "it was ordered twice"
    );
    let report = report_of(&list, "own");
    assert_eq!(
        report.memory.get(),
        128,
        "it is told as the template itself"
    );
    assert_eq!(report.variants.len(), 1);
    assert!(report.variants[0].is_usable && report.variants[0].is_awaited);
    let used = list.use_variant(&target(256)).unwrap();
    assert_eq!(used.version, template.version().as_str());
    assert_eq!(used.size(), size(256));
    assert!(!list.variant_report(&target(256)).unwrap().is_awaited);
    assert_ne!(list.current(&name("own")).unwrap().version, used.version);
    assert_eq!(list.all_ready().len(), 2);
    // One that was baked ahead made nobody wait.
    let mut ahead = request(512, None);
    ahead.is_awaited = false;
    let catalog = kitchen.catalog();
    let recipe = catalog.get(&name("own")).unwrap();
    list.order_variant(recipe, &ahead).unwrap();
    kitchen.bake_next(&list);
    assert!(!kitchen.order(&list, 512, Some("p")).unwrap().is_awaited);
}

#[test]
fn sizes_that_do_not_fit_are_refused_and_others_are_bounded() {
    let kitchen = Kitchen::new();
    kitchen.write(2, "shell");
    let list = kitchen.ready();
    for memory in [128, 257, 300] {
        let refused = kitchen.order(&list, memory, Some("p")).unwrap_err();
        assert!(
            matches!(refused, TemplateUnavailable::Size { .. }),
            "{memory}"
        );
    }
    for number in 1..=limits::VARIANTS_OF_PROJECT_MAX as u64 {
        kitchen.order(&list, 256 + 128 * number, Some("p")).unwrap();
    }
    let refused = kitchen.order(&list, 4096, Some("p")).unwrap_err();
    assert!(matches!(refused, TemplateUnavailable::ManyOfProject { .. }));
    // What is there already is everybody's.
    kitchen.order(&list, 384, Some("q")).unwrap();
    let left = limits::VARIANTS_OF_TEMPLATE_MAX - limits::VARIANTS_OF_PROJECT_MAX;
    for number in 1..=left as u64 {
        kitchen.order(&list, 4096 + 128 * number, None).unwrap();
    }
    let refused = kitchen.order(&list, 8192, None).unwrap_err();
    assert!(matches!(refused, TemplateUnavailable::ManyVariants { .. }));
    // One that failed makes room, and one that waits does not.
    // Those of nobody go first.
    let nobodys = BTreeSet::from_iter((1..=left as u64).map(|number| target(4096 + 128 * number)));
    let failed = list.take_order(&nobodys).unwrap();
    list.set_failed(&failed, "no disk".to_owned());
    kitchen.order(&list, 8192, Some("p")).unwrap();
    assert_eq!(
        report_of(&list, "own").variants.len(),
        limits::VARIANTS_OF_TEMPLATE_MAX
    );
}

#[test]
fn variants_are_of_the_recipe_that_their_template_is_of() {
    let kitchen = Kitchen::new();
    kitchen.write(1, "shell");
    let list = kitchen.ready();
    kitchen.order(&list, 512, Some("p")).unwrap();
    kitchen.bake_next(&list);
    kitchen.write(2, "shell");
    list.learn(&kitchen.catalog());
    assert!(
        list.use_variant(&target(512)).is_some(),
        "its template is used, too"
    );
    // Of a recipe that only a variant was baked from so far.
    kitchen.order(&list, 1024, Some("p")).unwrap();
    kitchen.bake_next(&list);
    list.order(&name("own"), BakeWish::Renew).unwrap();
    kitchen.bake_next(&list);
    let variants = report_of(&list, "own").variants;
    let sizes: Vec<_> = variants.iter().map(|one| one.size).collect();
    assert_eq!(sizes, [size(1024)], "one of an older recipe is used");
    assert!(list.use_variant(&target(1024)).is_some());
    // The recipe goes, or wants more than a variant has: what is baked is used, nothing is baked.
    kitchen.remove_recipe();
    list.learn(&kitchen.catalog());
    assert!(list.use_variant(&target(1024)).is_some());
}
