//! Which bytes of a file a `Range` header asks for.

/// One range. Several at once are not served: the whole file is a right answer to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// From the first to the last, both included; to the end when there is no last.
    From { first: u64, last: Option<u64> },
    /// As many from the end.
    Last(u64),
}

/// Bytes that a file has: the first one, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub offset: u64,
    pub length: u64,
}

impl ByteRange {
    /// Reads a header. What is not one range of bytes is no range, as if it were not there.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let (unit, range) = header.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (first, last) = range.trim().split_once('-')?;
        match (first.is_empty(), last.is_empty()) {
            (true, true) => None,
            (true, false) => number(last).map(Self::Last),
            (false, true) => Some(Self::From {
                first: number(first)?,
                last: None,
            }),
            (false, false) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::From {
                    first,
                    last: Some(last),
                })
            }
        }
    }

    /// The part of a file of this size; `None` when the file has none of it.
    #[must_use]
    pub fn within(self, size: u64) -> Option<Slice> {
        match self {
            Self::From { first, last } => {
                let end = last.map_or(size, |last| last.saturating_add(1).min(size));
                let length = end.checked_sub(first).filter(|length| *length > 0)?;
                Some(Slice {
                    offset: first,
                    length,
                })
            }
            Self::Last(count) => {
                let length = count.min(size);
                (length > 0).then(|| Slice {
                    offset: size - length,
                    length,
                })
            }
        }
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = text.trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A number that is too large is as far away as any.
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(header: &str, size: u64) -> Option<(u64, u64)> {
        let slice = ByteRange::parse(header)?.within(size)?;
        Some((slice.offset, slice.length))
    }

    #[test]
    fn ranges_are_cut_to_the_file() {
        assert_eq!(slice("bytes=0-0", 10), Some((0, 1)));
        assert_eq!(slice("bytes=2-5", 10), Some((2, 4)));
        assert_eq!(slice("bytes=2-", 10), Some((2, 8)));
        assert_eq!(slice("bytes=8-99", 10), Some((8, 2)));
        assert_eq!(slice("bytes=-3", 10), Some((7, 3)));
        assert_eq!(slice("bytes=-99", 10), Some((0, 10)));
        assert_eq!(slice("Bytes = 1 - 1", 10), Some((1, 1)));
        assert_eq!(slice("bytes=0-99999999999999999999", 10), Some((0, 10)));
    }

    #[test]
    fn what_the_file_does_not_have_is_no_part_of_it() {
        for (header, size) in [
            ("bytes=10-", 10),
            ("bytes=10-20", 10),
            ("bytes=-0", 10),
            ("bytes=0-", 0),
            ("bytes=-1", 0),
        ] {
            assert!(ByteRange::parse(header).is_some(), "{header}");
            assert_eq!(slice(header, size), None, "{header}");
        }
    }

    #[test]
    fn what_is_no_single_range_is_ignored() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-2",
            "bytes=0-1,3-4",
            "lines=0-1",
            "bytes=--1",
            "bytes=+1-2",
        ] {
            assert_eq!(ByteRange::parse(header), None, "{header}");
        }
    }
}
