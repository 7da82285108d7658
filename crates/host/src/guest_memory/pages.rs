//! Ranges of pages, and arithmetic on sorted lists of them.

use super::{COPY_BYTES, PAGE_BYTES};

/// Neighbouring pages, counted from the start of guest memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    pub first: u64,
    pub count: u64,
}

impl Pages {
    const fn end(self) -> u64 {
        self.first + self.count
    }

    /// How much they are.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.count * PAGE_BYTES
    }
}

pub(super) fn push(found: &mut Vec<Pages>, page: u64) {
    match found.last_mut() {
        Some(last) if last.first + last.count == page => last.count += 1,
        _ => found.push(Pages {
            first: page,
            count: 1,
        }),
    }
}

/// Merges neighbours until at most `limit` are left, by taking in the smallest gaps between them.
#[must_use]
pub fn merge_to(mut pages: Vec<Pages>, limit: usize) -> Vec<Pages> {
    let mut gap = 1;
    while pages.len() > limit.max(1) {
        let mut merged: Vec<Pages> = Vec::with_capacity(pages.len());
        for next in pages {
            match merged.last_mut() {
                Some(last) if next.first - (last.first + last.count) <= gap => {
                    last.count = next.first + next.count - last.first;
                }
                _ => merged.push(next),
            }
        }
        pages = merged;
        gap *= 2;
    }
    pages
}

/// Cuts ranges into steps of a copy.
pub(super) fn cut(pages: &[Pages]) -> Vec<Pages> {
    let step = COPY_BYTES / PAGE_BYTES;
    let mut jobs = Vec::new();
    for range in pages {
        let mut first = range.first;
        let end = range.first + range.count;
        while first < end {
            let count = (end - first).min(step);
            jobs.push(Pages { first, count });
            first += count;
        }
    }
    jobs
}

/// A list in any order, with ranges that may overlap, as one that the arithmetic here understands.
#[must_use]
pub fn sorted(mut pages: Vec<Pages>) -> Vec<Pages> {
    pages.retain(|range| range.count > 0);
    pages.sort_unstable_by_key(|range| range.first);
    join(&pages, &[])
}

/// The pages that are in both of two sorted lists.
#[must_use]
pub fn both(one: &[Pages], other: &[Pages]) -> Vec<Pages> {
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    let mut found = Vec::new();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let (first, end) = (a.first.max(b.first), a.end().min(b.end()));
        if first < end {
            found.push(Pages {
                first,
                count: end - first,
            });
        }
        // What ends first meets nothing of what is behind.
        if a.end() <= b.end() {
            left.next();
        } else {
            right.next();
        }
    }
    found
}

/// All pages that are in one of two sorted lists, as one.
#[must_use]
pub fn join(one: &[Pages], other: &[Pages]) -> Vec<Pages> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut joined: Vec<Pages> = Vec::new();
    loop {
        let next = match (one.peek(), other.peek()) {
            (Some(a), Some(b)) if a.first <= b.first => one.next(),
            (_, Some(_)) => other.next(),
            (_, None) => one.next(),
        };
        let Some(next) = next else {
            return joined;
        };
        match joined.last_mut() {
            Some(last) if next.first <= last.end() => {
                last.count = last.end().max(next.end()) - last.first;
            }
            _ => joined.push(*next),
        }
    }
}

/// The pages of a sorted list that are not in another.
#[must_use]
pub fn without(pages: &[Pages], taken: &[Pages]) -> Vec<Pages> {
    let mut rest = Vec::new();
    let mut from = 0;
    for range in pages {
        let mut first = range.first;
        // Neither list goes back, so what ends before this range ends before all that follow.
        while taken.get(from).is_some_and(|taken| taken.end() <= first) {
            from += 1;
        }
        for taken in taken[from..]
            .iter()
            .take_while(|taken| taken.first < range.end())
        {
            if taken.first > first {
                rest.push(Pages {
                    first,
                    count: taken.first - first,
                });
            }
            first = first.max(taken.end());
        }
        if first < range.end() {
            rest.push(Pages {
                first,
                count: range.end() - first,
            });
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn numbers(pages: &[Pages]) -> BTreeSet<u64> {
        pages
            .iter()
            .flat_map(|range| range.first..range.end())
            .collect()
    }

    fn ranges(numbers: &BTreeSet<u64>) -> Vec<Pages> {
        let mut pages = Vec::new();
        for number in numbers {
            push(&mut pages, *number);
        }
        pages
    }

    proptest! {
        #[test]
        fn lists_are_joined_and_taken_apart_as_sets_are(
            one in proptest::collection::btree_set(0u64..60, 0..40),
            other in proptest::collection::btree_set(0u64..60, 0..40),
        ) {
            let (a, b) = (ranges(&one), ranges(&other));
            let all: BTreeSet<u64> = one.union(&other).copied().collect();
            let left: BTreeSet<u64> = one.difference(&other).copied().collect();
            let shared: BTreeSet<u64> = one.intersection(&other).copied().collect();
            prop_assert_eq!(join(&a, &b), ranges(&all));
            prop_assert_eq!(numbers(&without(&a, &b)), left);
            prop_assert_eq!(both(&a, &b), ranges(&shared));
        }

        #[test]
        fn a_list_in_any_order_is_sorted(
            list in proptest::collection::vec((0u64..60, 0u64..9), 0..40),
        ) {
            let list: Vec<Pages> = list
                .into_iter()
                .map(|(first, count)| Pages { first, count })
                .collect();
            let expected = ranges(&numbers(&list));
            prop_assert_eq!(sorted(list), expected);
        }
    }

    proptest! {
        #[test]
        fn merging_keeps_every_page_and_the_limit(
            steps in proptest::collection::vec((1u64..20, 1u64..5), 1..80),
            limit in 1usize..20,
        ) {
            let mut at = 0;
            let mut before = Vec::new();
            for (gap, count) in steps {
                before.push(Pages { first: at + gap, count });
                at += gap + count;
            }
            let after = merge_to(before.clone(), limit);
            prop_assert!(after.len() <= limit);
            for range in before {
                prop_assert!(after.iter().any(|wide| wide.first <= range.first
                    && range.first + range.count <= wide.first + wide.count));
            }
        }
    }
}
