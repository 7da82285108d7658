//! A line in front of something scarce: first come, first served within a project, and projects
//! take turns, so that whoever asks for much waits for it alone.

use std::collections::BTreeMap;

use dayfly_types::ProjectId;

/// Who waits, in the order of asking, and which turn each project had last.
#[derive(Debug)]
pub struct FairLine<T> {
    waiting: BTreeMap<ProjectId, BTreeMap<LineNumber, T>>,
    length: usize,
    bounds: LineBounds,
    joined: u64,
    /// Of the projects that had one since nobody waited.
    turns: BTreeMap<ProjectId, u64>,
    turn: u64,
}

/// One who joined. Numbers grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineNumber(u64);

/// How many may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineBounds {
    pub of_all: usize,
    /// Less, so that no project fills the line.
    pub of_project: usize,
}

/// Why somebody may not even wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineFull {
    #[error("{0} of the project wait already, which is the limit")]
    OfProject(usize),
    #[error("{0} wait already, which is the limit")]
    OfAll(usize),
}

impl<T> FairLine<T> {
    /// An empty line.
    #[must_use]
    pub const fn new(bounds: LineBounds) -> Self {
        Self {
            waiting: BTreeMap::new(),
            length: 0,
            bounds,
            joined: 0,
            turns: BTreeMap::new(),
            turn: 0,
        }
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Goes to the end of the project's part of the line.
    ///
    /// # Errors
    /// [`LineFull`].
    pub fn join(&mut self, project: &ProjectId, who: T) -> Result<LineNumber, LineFull> {
        if self.length >= self.bounds.of_all {
            return Err(LineFull::OfAll(self.length));
        }
        let own = self.waiting.get(project).map_or(0, BTreeMap::len);
        if own >= self.bounds.of_project {
            return Err(LineFull::OfProject(own));
        }
        let number = LineNumber(self.joined);
        self.joined += 1;
        let part = self.waiting.entry(project.clone()).or_default();
        part.insert(number, who);
        self.length += 1;
        Ok(number)
    }

    /// Leaves the line; `None` for who is not in it any more.
    pub fn leave(&mut self, project: &ProjectId, number: LineNumber) -> Option<T> {
        let part = self.waiting.get_mut(project)?;
        let who = part.remove(&number)?;
        self.has_left(project);
        Some(who)
    }

    /// The next: the first of the project whose last turn is longest ago. Of projects that had none,
    /// the one that has waited longest.
    pub fn call_next(&mut self) -> Option<(LineNumber, T)> {
        let rank = |project: &ProjectId, part: &BTreeMap<LineNumber, T>| {
            let last = self.turns.get(project).copied().unwrap_or(0);
            (last, part.keys().next().copied())
        };
        let parts = self.waiting.iter();
        let next = parts.min_by_key(|(project, part)| rank(project, part));
        let project = next?.0.clone();
        let first = self.waiting.get_mut(&project)?.pop_first()?;
        self.turn += 1;
        self.turns.insert(project.clone(), self.turn);
        self.has_left(&project);
        Some(first)
    }

    fn has_left(&mut self, project: &ProjectId) {
        self.length -= 1;
        if self.waiting.get(project).is_some_and(BTreeMap::is_empty) {
            self.waiting.remove(project);
        }
        if self.is_empty() {
            // Nobody was passed over. It also keeps the list from growing.
            self.turns.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDE: LineBounds = LineBounds {
        of_all: 100,
        of_project: 100,
    };

    fn project(name: &str) -> ProjectId {
        ProjectId::parse(name).unwrap()
    }

    fn line(names: &[&'static str]) -> FairLine<&'static str> {
        let mut line = FairLine::new(WIDE);
        for name in names.iter().copied() {
            line.join(&project(&name[..1]), name).unwrap();
        }
        line
    }

    fn emptied(line: &mut FairLine<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| line.call_next().map(|(_, who)| who)).collect()
    }

    #[test]
    fn within_a_project_the_first_is_first_and_projects_take_turns() {
        let mut line = line(&["a1", "a2", "a3", "b1", "a4", "b2", "c1"]);
        assert_eq!(
            emptied(&mut line),
            ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
        );
    }

    #[test]
    fn who_joins_behind_a_long_line_of_another_project_waits_for_one_turn() {
        let mut line = line(&["a1", "a2", "a3", "a4"]);
        assert_eq!(line.call_next().unwrap().1, "a1");
        line.join(&project("b"), "b1").unwrap();
        assert_eq!(line.call_next().unwrap().1, "b1");
        // One that comes again and again does not keep the others waiting for ever.
        line.join(&project("b"), "b2").unwrap();
        assert_eq!(emptied(&mut line), ["a2", "b2", "a3", "a4"]);
    }

    #[test]
    fn who_leaves_is_not_called_and_holds_up_nobody() {
        let mut line = line(&["a1", "b1"]);
        let second = line.join(&project("a"), "a2").unwrap();
        let third = line.join(&project("a"), "a3").unwrap();
        assert_eq!(line.leave(&project("a"), second), Some("a2"));
        assert_eq!(line.leave(&project("a"), second), None);
        assert_eq!(line.leave(&project("b"), third), None, "it is another's");
        assert_eq!(emptied(&mut line), ["a1", "b1", "a3"]);
        assert!(line.is_empty() && line.turns.is_empty() && line.waiting.is_empty());
    }

    #[test]
    fn a_full_line_refuses_and_no_project_fills_it() {
        let mut line = FairLine::new(LineBounds {
            of_all: 3,
            of_project: 2,
        });
        let (many, other) = (project("a"), project("b"));
        line.join(&many, 1).unwrap();
        let second = line.join(&many, 2).unwrap();
        assert_eq!(line.join(&many, 3), Err(LineFull::OfProject(2)));
        line.join(&other, 4).unwrap();
        assert_eq!(line.join(&other, 5), Err(LineFull::OfAll(3)));
        line.leave(&many, second).unwrap();
        assert!(line.join(&other, 5).is_ok());
    }

    proptest! {
        /// Between two turns of a project that waits, no other project has more than one.
        #[test]
        fn nobody_is_passed_over_twice(joins in proptest::collection::vec(0..4_usize, 1..60)) {
            let names = ["a", "b", "c", "d"].map(project);
            let mut line = FairLine::new(WIDE);
            for index in &joins {
                line.join(&names[*index], *index).unwrap();
            }
            let mut left = [0; 4];
            joins.iter().for_each(|index| left[*index] += 1);
            let mut passed = [[0; 4]; 4];
            let mut called = Vec::new();
            while let Some((_, next)) = line.call_next() {
                left[next] -= 1;
                called.push(next);
                passed[next] = [0; 4];
                for waits in (0..4).filter(|one| *one != next && left[*one] > 0) {
                    passed[waits][next] += 1;
                    prop_assert!(passed[waits][next] <= 1, "{called:?}");
                }
            }
            prop_assert_eq!(called.len(), joins.len());
        }
    }
}
