//! The members of an archive that a user uploads, as the agent in the guest reads them.
//!
//! What is promised for any archive: no panic; and the members that are unpacked are those that
//! another program lists: the same names, links, kinds and sizes.

use std::io::{self, Read};

use super::Inputs;

// The agent is a program without a library, and this file needs nothing else of it.
#[path = "../../../bin/dayfly-guest/src/files/archive.rs"]
mod archive;

use archive::{Member, MemberKind, Members};

/// What one archive may unfold into here, so that no input takes long.
const CONTENT_BYTES_MAX: u64 = 1 << 20;

pub(super) fn check(input: &[u8]) {
    let Some(members) = members(input) else {
        return;
    };
    let mut listed = Vec::new();
    let mut archive = tar::Archive::new(input);
    let Ok(entries) = archive.entries() else {
        return;
    };
    for entry in entries {
        // The other program refuses, which is as good.
        let Ok(mut entry) = entry else {
            return;
        };
        if entry.header().entry_type() == tar::EntryType::XGlobalHeader {
            continue;
        }
        let name = ended(&entry.path_bytes()).to_vec();
        let link = ended(&entry.link_name_bytes().unwrap_or_default()).to_vec();
        listed.push((name, link, entry.size()));
        if io::copy(&mut entry, &mut io::sink()).is_err() {
            return;
        }
    }
    let unpacked: Vec<_> = members
        .into_iter()
        .map(|member| {
            let name = ended(&member.name).to_vec();
            (name, ended(&member.link).to_vec(), member.size)
        })
        .collect();
    assert_eq!(unpacked, listed, "another program lists other members");
}

/// A name without the NULs at its end, of which the other program leaves all but one.
fn ended(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|byte| *byte != 0);
    &name[..end.map_or(0, |last| last + 1)]
}

/// All members, when the whole archive is accepted.
fn members(input: &[u8]) -> Option<Vec<Member>> {
    let mut archive = tar::Archive::new(input);
    let mut members = Members::new(&mut archive).ok()?;
    let mut all = Vec::new();
    let mut room = CONTENT_BYTES_MAX;
    while let Some((member, content)) = members.next().ok()? {
        room = room.checked_sub(member.size)?;
        let copied = io::copy(&mut content.take(member.size + 1), &mut io::sink()).ok()?;
        if copied != member.size {
            return None;
        }
        assert!(
            member.kind == MemberKind::File || member.size == 0,
            "content where there can be none"
        );
        assert!(member.mode <= 0o7777_7777);
        let _ = member.mtime;
        all.push(member);
    }
    Some(all)
}

/// Archives that are honest, and ones that are not.
pub(super) fn seeds() -> Inputs {
    archives()
}

pub(super) fn archives() -> Inputs {
    let mut honest = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(7);
    let long = "n".repeat(150);
    for name in ["a/file", &long] {
        let _ = honest.append_data(&mut header.clone(), name, &b"content"[..]);
    }
    header.set_size(0);
    header.set_entry_type(tar::EntryType::Symlink);
    let _ = honest.append_link(&mut header.clone(), "a/link", "../b");
    header.set_entry_type(tar::EntryType::Link);
    let _ = honest.append_link(&mut header.clone(), "hard", "a/file");
    let _ = honest.append_pax_extensions([("path", &b"renamed"[..]), ("size", b"0")]);
    header.set_entry_type(tar::EntryType::Directory);
    let _ = honest.append_data(&mut header.clone(), "directory", io::empty());
    let honest = honest.into_inner().unwrap_or_default();
    let forged = |kind, name: &str, link: &str| {
        let mut header = tar::Header::new_gnu();
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o4777);
        header.set_size(0);
        header.set_cksum();
        header.as_bytes().to_vec()
    };
    use tar::EntryType as Kind;
    let escape = [
        forged(Kind::Symlink, "l", ".."),
        forged(Kind::Regular, "l/canary", ""),
        forged(Kind::Regular, "../canary", ""),
    ]
    .concat();
    let link = [
        forged(Kind::Symlink, "l", "../canary"),
        forged(Kind::Link, "l/h", "l"),
    ]
    .concat();
    let name = b"innocent\0../canary\0";
    let mut long = tar::Header::new_gnu();
    long.set_entry_type(Kind::GNULongName);
    long.set_size(name.len() as u64);
    long.set_cksum();
    let mut two_names = long.as_bytes().to_vec();
    two_names.extend(name);
    two_names.resize(1024, 0);
    two_names.extend(forged(Kind::Regular, "short", ""));
    [
        ("seed-honest", honest),
        ("seed-two-names", two_names),
        ("seed-escape", escape),
        ("seed-links", link),
        ("seed-device", forged(Kind::Char, "d", "")),
        ("seed-sparse", forged(Kind::GNUSparse, "s", "")),
    ]
    .map(|(name, mut bytes)| {
        bytes.extend([0; 1024]);
        (name.to_owned(), bytes)
    })
    .to_vec()
}
