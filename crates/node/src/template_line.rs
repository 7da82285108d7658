//! The line of templates that wait for their bake, of which there is one at a time for everybody.
//!
//! What the operator's recipes say goes before what projects ordered, and projects take turns, so that
//! whoever orders much waits for it alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dayfly_types::{ProjectId, TemplateName, limits};

use crate::template_target::BakeTarget;

#[derive(Debug, Default)]
pub(crate) struct TemplateLine {
    waiting: VecDeque<Place>,
    /// Which turn each project had last.
    turns: BTreeMap<ProjectId, u64>,
    turn: u64,
}

#[derive(Debug)]
struct Place {
    target: BakeTarget,
    /// Who ordered it; nobody, when it is one of the operator's.
    project: Option<ProjectId>,
}

impl TemplateLine {
    pub(crate) fn push(&mut self, target: BakeTarget, project: Option<ProjectId>) {
        self.waiting.push_back(Place { target, project });
    }

    /// The next but for `passed`: of the operator's the first, or else the first of the project whose
    /// last turn is longest ago.
    pub(crate) fn take(&mut self, passed: &BTreeSet<BakeTarget>) -> Option<BakeTarget> {
        let last_turn = |project: &ProjectId| self.turns.get(project).copied().unwrap_or(0);
        let places = self.waiting.iter().enumerate();
        let open = places.filter(|(_, place)| !passed.contains(&place.target));
        let next = open.min_by_key(|(_, place)| place.project.as_ref().map(last_turn));
        let place = self.waiting.remove(next?.0)?;
        if let Some(project) = place.project {
            if self.turns.len() >= limits::ORDERED_TEMPLATES_MAX {
                self.turns.clear();
            }
            self.turn += 1;
            self.turns.insert(project, self.turn);
        }
        Some(place.target)
    }

    /// Takes a template out, in every size.
    pub(crate) fn forget(&mut self, name: &TemplateName) {
        self.waiting.retain(|place| place.target.name != *name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> BakeTarget {
        BakeTarget::own(&TemplateName::parse(name).unwrap())
    }

    fn line(places: &[(&str, Option<&str>)]) -> TemplateLine {
        let mut line = TemplateLine::default();
        for (name, project) in places {
            let project = project.map(|project| ProjectId::parse(project).unwrap());
            line.push(target(name), project);
        }
        line
    }

    fn emptied(line: &mut TemplateLine) -> Vec<String> {
        let mut order = Vec::new();
        while let Some(target) = line.take(&BTreeSet::new()) {
            order.push(target.to_string());
        }
        order
    }

    #[test]
    fn the_operators_go_first_and_projects_take_turns() {
        let mut line = line(&[
            ("a1", Some("a")),
            ("a2", Some("a")),
            ("a3", Some("a")),
            ("b1", Some("b")),
            ("b2", Some("b")),
            ("base", None),
            ("agent", None),
        ]);
        let order = emptied(&mut line);
        assert_eq!(order, ["base", "agent", "a1", "b1", "a2", "b2", "a3"]);
        let project = |id: &str| Some(ProjectId::parse(id).unwrap());
        line.push(target("a4"), project("a"));
        line.push(target("c1"), project("c"));
        assert_eq!(emptied(&mut line), ["c1", "a4"], "it had its turn before");
    }

    #[test]
    fn who_is_passed_over_or_forgotten_does_not_hold_up_others() {
        let mut line = line(&[("a1", Some("a")), ("a2", Some("a")), ("b1", Some("b"))]);
        let passed = BTreeSet::from([target("a1")]);
        assert_eq!(line.take(&passed), Some(target("a2")));
        line.forget(&target("b1").name);
        assert_eq!(line.take(&passed), None);
        assert_eq!(line.take(&BTreeSet::new()), Some(target("a1")));
    }
}
