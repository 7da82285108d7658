//! What a directory holds: blocks, each with its entries first and their names behind them. Names
//! are in the order of their bytes over all blocks, for the kernel looks them up by halving.

use crate::data::{BLOCK, BLOCK_BYTES};

const ENTRY_BYTES: usize = 12;

/// A name, the number of its inode, and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed<'a> {
    pub(super) name: &'a [u8],
    pub(super) inode: u64,
    pub(super) kind: u8,
}

/// How many bytes a directory with these names has.
pub(super) fn size<'a>(names: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut blocks = 0;
    let mut used = 0;
    for name in names {
        let bytes = (ENTRY_BYTES + name.len()) as u64;
        if used + bytes > BLOCK_BYTES {
            blocks += 1;
            used = 0;
        }
        used += bytes;
    }
    blocks * BLOCK_BYTES + used
}

/// The bytes themselves. The entries are in order.
pub(super) fn encode(entries: &[Listed<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let mut used = 0;
        let fits = rest.iter().take_while(|entry| {
            used += (ENTRY_BYTES + entry.name.len()) as u64;
            used <= BLOCK_BYTES
        });
        let (block, further) = rest.split_at(fits.count().max(1));
        encode_block(block, &mut bytes);
        rest = further;
        if !rest.is_empty() {
            bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        }
    }
    bytes
}

fn encode_block(entries: &[Listed<'_>], bytes: &mut Vec<u8>) {
    let mut name_place = entries.len() * ENTRY_BYTES;
    for entry in entries {
        let place = u16::try_from(name_place).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&entry.inode.to_le_bytes());
        bytes.extend_from_slice(&place.to_le_bytes());
        bytes.extend_from_slice(&[entry.kind, 0]);
        name_place += entry.name.len();
    }
    for entry in entries {
        bytes.extend_from_slice(entry.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_the_bytes() {
        for count in [1, 2, 30, 300, 3000] {
            let names: Vec<String> = (0..count).map(|n| format!("a-file-{n:0>9}")).collect();
            let entry = |name| Listed {
                name,
                inode: 7,
                kind: 1,
            };
            let entries: Vec<_> = names.iter().map(|name| entry(name.as_bytes())).collect();
            let said = size(names.iter().map(String::as_bytes));
            assert_eq!(encode(&entries).len() as u64, said, "{count}");
        }
    }
}
