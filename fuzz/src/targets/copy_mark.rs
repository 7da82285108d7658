//! The page in a guest's memory that tells a copy from its source.
//!
//! What is promised for any page and text: no panic; a page is marked only when it begins with the
//! mark; and a mark's text carries its nonce.

use dayfly_guest_proto::copy_mark::{CopyMark, NONCE_BYTES, PREFIX_BYTES, is_marked, page_prefix};

use super::Inputs;

pub(super) fn check(input: &[u8]) {
    let (nonce, page) = input.split_at(input.len().min(NONCE_BYTES));
    if let Ok(nonce) = <[u8; NONCE_BYTES]>::try_from(nonce) {
        let prefix = page_prefix(&nonce);
        let expected = page.len() > PREFIX_BYTES && page[..PREFIX_BYTES] == prefix;
        assert_eq!(is_marked(page, &prefix), expected);
        let mark = CopyMark::from_nonce(&nonce);
        assert!(mark.nonce().eq(nonce), "another nonce");
    }
    let text = String::from_utf8_lossy(input).into_owned();
    if let Ok(mark) = CopyMark::try_from(text.clone()) {
        assert_eq!(mark.nonce().count(), NONCE_BYTES);
        assert_eq!(String::from(mark), text, "another text");
    }
}

pub(super) fn seeds() -> Inputs {
    let nonce = [7; NONCE_BYTES];
    let mut marked = nonce.to_vec();
    marked.extend(page_prefix(&nonce));
    marked.push(1);
    let text = String::from(CopyMark::from_nonce(&nonce));
    vec![
        ("seed-page".to_owned(), marked),
        ("seed-text".to_owned(), text.into_bytes()),
    ]
}
