//! Which layer a page of guest memory is seen in when layers lie on each other.
//!
//! This file knows ranges of pages and nothing else.

use std::collections::BTreeMap;

use dayfly_vmm::PageRange;

/// Neighbouring pages that are seen in one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) pages: PageRange,
    /// Counted from the lowest.
    pub(super) layer: usize,
}

/// Lays the ranges of layers over each other, lowest first. The pieces are in order and apart.
pub(super) fn overlay(layers: &[&[PageRange]]) -> Vec<Piece> {
    let mut seen = Seen::default();
    for (layer, extents) in layers.iter().enumerate() {
        for extent in *extents {
            seen.lay(*extent, layer);
        }
    }
    let pieces = seen.0.into_iter();
    pieces
        .map(|(first, (end, layer))| Piece {
            pages: PageRange {
                first,
                count: end - first,
            },
            layer,
        })
        .collect()
}

/// All pages of some pieces in as few ranges as possible.
pub(super) fn union(pieces: &[Piece]) -> Vec<PageRange> {
    let mut ranges: Vec<PageRange> = Vec::new();
    for Piece { pages, .. } in pieces {
        match ranges.last_mut() {
            Some(last) if last.end() == pages.first => last.count += pages.count,
            Some(_) | None => ranges.push(*pages),
        }
    }
    ranges
}

/// By their first page: the page behind the last, and the layer.
#[derive(Default)]
struct Seen(BTreeMap<u64, (u64, usize)>);

impl Seen {
    fn lay(&mut self, pages: PageRange, layer: usize) {
        let (first, end) = (pages.first, pages.end());
        let before = self.0.range(..first).next_back();
        if let Some((&start, &(stop, below))) = before
            && stop > first
        {
            self.0.insert(start, (first, below));
            self.keep_rest(end, stop, below);
        }
        let covered: Vec<u64> = self.0.range(first..end).map(|(start, _)| *start).collect();
        for start in covered {
            if let Some((stop, below)) = self.0.remove(&start) {
                self.keep_rest(end, stop, below);
            }
        }
        self.0.insert(first, (end, layer));
    }

    /// What of a piece lies behind the pages that were laid over it.
    fn keep_rest(&mut self, end: u64, stop: u64, layer: usize) {
        if stop > end {
            self.0.insert(end, (stop, layer));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_page_is_seen_in_the_topmost_layer_that_has_it(
            layers in proptest::collection::vec(
                proptest::collection::vec((0u64..60, 1u64..12), 0..8), 0..6),
        ) {
            let layers: Vec<Vec<PageRange>> = layers
                .into_iter()
                .map(|ranges| ranges.into_iter().map(PageRange::from).collect())
                .collect();
            let slices: Vec<&[PageRange]> = layers.iter().map(Vec::as_slice).collect();
            let pieces = overlay(&slices);
            let ranges = union(&pieces);
            for page in 0..80 {
                let has = |range: &PageRange| range.first <= page && page < range.end();
                let wanted = layers.iter().rposition(|ranges| ranges.iter().any(has));
                let found: Vec<usize> = pieces
                    .iter()
                    .filter(|piece| has(&piece.pages))
                    .map(|piece| piece.layer)
                    .collect();
                prop_assert_eq!(&found, &wanted.into_iter().collect::<Vec<_>>());
                prop_assert_eq!(ranges.iter().filter(|range| has(range)).count(), found.len());
            }
            // In order, and with a gap between any two.
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end() < pair[1].first));
        }
    }
}
