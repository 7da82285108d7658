//! A JSON object that ends with the checksum of itself, so that a damaged byte is noticed.

const BEFORE_CHECKSUM: &[u8] = b",\"checksum\":\"";
const BEHIND_CHECKSUM: &[u8] = b"\"}\n";
const CHECKSUM_CHARACTERS: usize = 64;

/// Adds the checksum to the text of an object that is not empty.
#[must_use]
pub fn with_checksum(mut object: Vec<u8>) -> Vec<u8> {
    let checksum = blake3::hash(&object).to_hex();
    object.pop();
    object.extend(BEFORE_CHECKSUM);
    object.extend(checksum.as_bytes());
    object.extend(BEHIND_CHECKSUM);
    object
}

/// The object without its checksum, if that is right.
#[must_use]
pub fn checked_object(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(BEHIND_CHECKSUM)?;
    let (text, checksum) = text.split_at_checked(text.len().checked_sub(CHECKSUM_CHARACTERS)?)?;
    let mut body = text.strip_suffix(BEFORE_CHECKSUM)?.to_vec();
    body.push(b'}');
    (blake3::hash(&body).to_hex().as_bytes() == checksum).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_byte_is_noticed() {
        let object = br#"{"a":1}"#.to_vec();
        let text = with_checksum(object.clone());
        assert_eq!(checked_object(&text), Some(object));
        for index in 0..text.len() {
            let mut damaged = text.clone();
            damaged[index] ^= 1;
            assert_eq!(checked_object(&damaged), None, "{index}");
            assert_eq!(checked_object(&text[..index]), None, "{index}");
        }
    }
}
