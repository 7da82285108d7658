//! Sizes on the command line: `512M`, `10G`.

/// Why a text is not a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give a whole number with its unit, such as 512M or 10G")]
pub(crate) struct InvalidSize;

/// Reads a size as MiB.
pub(crate) fn parse_mebibytes(text: &str) -> Result<u64, InvalidSize> {
    let unit = text.chars().last().ok_or(InvalidSize)?;
    let factor = match unit.to_ascii_uppercase() {
        'M' => 1,
        'G' => 1024,
        'T' => 1024 * 1024,
        _ => return Err(InvalidSize),
    };
    let digits = &text[..text.len() - unit.len_utf8()];
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidSize);
    }
    let number: u64 = digits.parse().map_err(|_| InvalidSize)?;
    number.checked_mul(factor).ok_or(InvalidSize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit() {
        for (text, mebibytes) in [("16M", 16), ("2g", 2048), ("1T", 1 << 20)] {
            assert_eq!(parse_mebibytes(text), Ok(mebibytes), "{text}");
        }
        for text in [
            "",
            "M",
            "16",
            "1.5G",
            "-1M",
            "+1M",
            "1 M",
            "1X",
            "é",
            "99999999999999999999G",
        ] {
            assert_eq!(parse_mebibytes(text), Err(InvalidSize), "{text:?}");
        }
    }
}
