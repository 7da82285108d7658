//! The extended header of an entry: `LENGTH KEY=VALUE\n`, again and again.

use std::collections::BTreeMap;

const ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

/// Why an extended header cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PaxError {
    #[error("a record of the extended header is cut or has the wrong length")]
    Record,
    #[error("the value of {key} is not a number of its kind")]
    Number { key: &'static str },
    #[error("the extended header says {key}, which changes what the entry's bytes mean")]
    Meaning { key: String },
}

/// What an extended header says instead of the plain one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pax {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) link: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    pub(crate) uid: Option<u64>,
    pub(crate) gid: Option<u64>,
    pub(crate) modified: Option<(i64, u32)>,
    pub(crate) attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Pax {
    /// Reads all records. Keys that say nothing about the file (times of access, names of users) are
    /// passed over, as the format demands; those that change how its bytes are read are refused.
    pub(crate) fn parse(mut bytes: &[u8]) -> Result<Self, PaxError> {
        let mut pax = Self::default();
        while !bytes.is_empty() {
            let (key, value, rest) = record(bytes).ok_or(PaxError::Record)?;
            pax.set(key, value)?;
            bytes = rest;
        }
        Ok(pax)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), PaxError> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size = Some(number("size", value)?),
            b"uid" => self.uid = Some(number("uid", value)?),
            b"gid" => self.gid = Some(number("gid", value)?),
            b"mtime" => self.modified = Some(moment(value)?),
            key if key.starts_with(b"GNU.sparse.") || key == b"SCHILY.realsize" => {
                let key = crate::entry::shown(key);
                return Err(PaxError::Meaning { key });
            }
            key => {
                if let Some(name) = key.strip_prefix(ATTRIBUTE) {
                    self.attributes.insert(name.to_vec(), value.to_vec());
                }
            }
        }
        Ok(())
    }
}

/// A record of a header for all entries that follow may only be a comment: everything else would
/// speak of files that are not in sight.
pub(crate) fn is_comment(mut bytes: &[u8]) -> Result<bool, PaxError> {
    while !bytes.is_empty() {
        let (key, _, rest) = record(bytes).ok_or(PaxError::Record)?;
        if key != b"comment" {
            return Ok(false);
        }
        bytes = rest;
    }
    Ok(true)
}

fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let digits = bytes.get(..space)?;
    let length: usize = plain_number(digits)?.try_into().ok()?;
    let text = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (key, value) = text.split_at(equals);
    Some((key, value.get(1..)?, bytes.get(length..)?))
}

fn plain_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn number(key: &'static str, value: &[u8]) -> Result<u64, PaxError> {
    plain_number(value).ok_or(PaxError::Number { key })
}

/// Seconds with a fraction, before 1970 with a minus sign.
fn moment(value: &[u8]) -> Result<(i64, u32), PaxError> {
    let wrong = PaxError::Number { key: "mtime" };
    let (is_before, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    let mut parts = digits.splitn(2, |byte| *byte == b'.');
    let whole = parts.next().and_then(plain_number);
    let whole = whole.and_then(|number| i64::try_from(number).ok());
    let whole = whole.ok_or_else(|| wrong.clone())?;
    let nanoseconds = nanoseconds(parts.next().unwrap_or_default()).ok_or(wrong)?;
    Ok(match (is_before, nanoseconds) {
        (false, part) => (whole, part),
        (true, 0) => (-whole, 0),
        (true, part) => (-whole - 1, 1_000_000_000 - part),
    })
}

fn nanoseconds(digits: &[u8]) -> Option<u32> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let nine = digits.iter().copied().chain(std::iter::repeat(b'0'));
    let value = |sum: u32, digit: u8| sum * 10 + u32::from(digit - b'0');
    Some(nine.take(9).fold(0, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_by_their_lengths() {
        let pax = Pax::parse(b"12 path=a=b\n19 mtime=1.5000000\n26 SCHILY.xattr.user.a=\nx\n");
        let pax = pax.unwrap();
        assert_eq!(pax.path.unwrap(), b"a=b");
        assert_eq!(pax.modified, Some((1, 500_000_000)));
        assert_eq!(pax.attributes[&b"user.a"[..]], b"\nx");
    }

    #[test]
    fn moments_before_the_epoch_count_upwards() {
        assert_eq!(moment(b"-1.25").unwrap(), (-2, 750_000_000));
        assert_eq!(moment(b"-3").unwrap(), (-3, 0));
        for wrong in [
            &b""[..],
            b".5",
            b"1.x",
            b"--1",
            b"+1",
            b"99999999999999999999",
        ] {
            assert!(moment(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn broken_records_are_refused() {
        let broken = [
            &b"x"[..],
            b"5 a=b",
            b"99 a=b\n",
            b"6 ab\n\n",
            b"0 a=b\n",
            b"-6 a=b\n",
            b"99999999999999999999 a=b\n",
        ];
        for bytes in broken {
            assert_eq!(Pax::parse(bytes), Err(PaxError::Record), "{bytes:?}");
        }
    }

    #[test]
    fn what_changes_the_meaning_of_bytes_is_refused() {
        let sparse = Pax::parse(b"22 GNU.sparse.major=1\n");
        assert!(
            matches!(sparse, Err(PaxError::Meaning { .. })),
            "{sparse:?}"
        );
        assert_eq!(
            Pax::parse(b"9 size=x\n"),
            Err(PaxError::Number { key: "size" })
        );
        assert!(is_comment(b"13 comment=x\n").unwrap());
        assert!(!is_comment(b"10 path=x\n").unwrap());
    }
}
