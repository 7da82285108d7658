//! The map: a text file that says which pages of which files lie over guest memory.
//!
//! ```text
//! dayfly-memory-map 1
//! memory 536870912
//! layer /run/memory-0.layer
//! 16 4
//! 1024 300
//! layer /run/memory-1.layer
//! 17 1
//! ```
//! Numbers under a layer are a first page and a count of pages of 4 KiB. A page is at the same
//! place in its file as in guest memory. Layers are in order, the lowest first.

use std::path::PathBuf;

/// The environment variable that names the map.
pub(crate) const MAP_VARIABLE: &str = "DAYFLY_MEMORY_MAP";
/// The first line.
pub(crate) const HEADER: &str = "dayfly-memory-map 1";
pub(crate) const PAGE_BYTES: u64 = 4096;

/// What lies over guest memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryMap {
    pub(crate) memory_bytes: u64,
    pub(crate) layers: Vec<Layer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) file: PathBuf,
    /// First page and count.
    pub(crate) extents: Vec<(u64, u64)>,
}

impl MemoryMap {
    /// Reads a map. `None` for anything that is not whole and in bounds.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != HEADER || !text.ends_with('\n') {
            return None;
        }
        let memory_bytes: u64 = lines.next()?.strip_prefix("memory ")?.parse().ok()?;
        let pages = memory_bytes / PAGE_BYTES;
        let mut layers: Vec<Layer> = Vec::new();
        for line in lines {
            if let Some(file) = line.strip_prefix("layer ") {
                layers.push(Layer {
                    file: PathBuf::from(file),
                    extents: Vec::new(),
                });
                continue;
            }
            let (first, count) = line.split_once(' ')?;
            let (first, count): (u64, u64) = (first.parse().ok()?, count.parse().ok()?);
            if count == 0 || first.checked_add(count)? > pages {
                return None;
            }
            layers.last_mut()?.extents.push((first, count));
        }
        Some(Self {
            memory_bytes,
            layers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "dayfly-memory-map 1\nmemory 40960\nlayer /run/a b\n0 1\n8 2\nlayer /run/c\n";

    #[test]
    fn a_map_is_read() {
        let map = MemoryMap::parse(TEXT).unwrap();
        assert_eq!(map.memory_bytes, 40960);
        assert_eq!(map.layers[0].file, PathBuf::from("/run/a b"));
        assert_eq!(map.layers[0].extents, [(0, 1), (8, 2)]);
        assert!(map.layers[1].extents.is_empty());
    }

    #[test]
    fn whatever_is_not_whole_or_in_bounds_is_refused() {
        for text in [
            "",
            "dayfly-memory-map 2\nmemory 4096\n",
            "dayfly-memory-map 1\nmemory 4096\n0 1\n",
            "dayfly-memory-map 1\nmemory 4096\nlayer x\n0 2\n",
            "dayfly-memory-map 1\nmemory 4096\nlayer x\n1 0\n",
            "dayfly-memory-map 1\nmemory 4096\nlayer x\n18446744073709551615 1\n",
            "dayfly-memory-map 1\nmemory 4096\nlayer x\n0 1",
        ] {
            assert_eq!(MemoryMap::parse(text), None, "{text:?}");
        }
    }
}
