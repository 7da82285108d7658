//! Orders: which pages of guest memory are to be what they were when the engine was started.
//!
//! An order is a number of ranges, in four bytes, and for each the number of its first page and a
//! count of pages, in eight bytes each; all of them with the least byte first. Its reply is the count
//! of pages that were discarded, in eight bytes. Whoever sends something else is hung up on.

/// The environment variable that names the socket for them.
pub(crate) const SOCKET_VARIABLE: &str = "DAYFLY_MEMORY_SOCKET";
/// Ranges of one order.
pub(crate) const RANGES_MAX: usize = 1024;
pub(crate) const HEADER_BYTES: usize = 4;
pub(crate) const RANGE_BYTES: usize = 16;

/// Neighbouring pages, all of them within guest memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// How many bytes of ranges follow a header. `None` for none, and for more than there may be.
#[must_use]
pub(crate) fn bytes_of_ranges(header: [u8; HEADER_BYTES]) -> Option<usize> {
    let count = usize::try_from(u32::from_le_bytes(header)).ok()?;
    (1..=RANGES_MAX)
        .contains(&count)
        .then_some(count * RANGE_BYTES)
}

/// The ranges of an order about a memory of so many pages. `None` unless all of them are within it:
/// of an order that is wrong nothing is done.
#[must_use]
pub(crate) fn ranges(bytes: &[u8], pages: u64) -> Option<impl Iterator<Item = Range>> {
    let (ranges, rest) = bytes.as_chunks::<RANGE_BYTES>();
    let read = |bytes: &[u8; RANGE_BYTES]| Range {
        first: number(bytes, 0),
        count: number(bytes, 8),
    };
    let is_within = |range: Range| {
        let end = range.first.checked_add(range.count);
        range.count > 0 && end.is_some_and(|end| end <= pages)
    };
    let is_fine = rest.is_empty() && ranges.iter().map(read).all(is_within);
    is_fine.then(|| ranges.iter().map(read))
}

fn number(bytes: &[u8; RANGE_BYTES], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(ranges: &[(u64, u64)]) -> Vec<u8> {
        let numbers = ranges.iter().flat_map(|&(first, count)| [first, count]);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn an_order_is_read() {
        assert_eq!(bytes_of_ranges(2_u32.to_le_bytes()), Some(32));
        let read: Vec<_> = ranges(&written(&[(3, 2), (9, 1)]), 10).unwrap().collect();
        assert_eq!(
            read,
            [Range { first: 3, count: 2 }, Range { first: 9, count: 1 }]
        );
    }

    #[test]
    fn an_order_of_another_length_is_refused() {
        assert_eq!(bytes_of_ranges([0; 4]), None);
        assert_eq!(bytes_of_ranges([0xff; 4]), None);
        let most = u32::try_from(RANGES_MAX).unwrap();
        assert!(bytes_of_ranges(most.to_le_bytes()).is_some());
        assert_eq!(bytes_of_ranges((most + 1).to_le_bytes()), None);
        assert!(ranges(&written(&[(3, 2)])[..15], 10).is_none());
    }

    #[test]
    fn one_range_outside_of_memory_is_one_too_many() {
        for range in [(9, 2), (10, 1), (0, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let order = written(&[(0, 1), range]);
            assert!(ranges(&order, 10).is_none(), "{range:?}");
        }
    }
}
