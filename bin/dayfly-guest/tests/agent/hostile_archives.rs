//! Archives that want out, or more than there is.

use std::os::unix::fs::symlink;
use std::path::Path;

use dayfly_guest_client::{AgentClient, StreamError};
use dayfly_guest_proto::GuestErrorCode;
use tar::{EntryType, Header};

use crate::file_trees::unpack;
use crate::support::{Guest, within};

/// An archive, member by member, with no check at all.
#[derive(Default)]
struct Forged(Vec<u8>);

impl Forged {
    fn member(mut self, kind: EntryType, name: &str, link: &str, content: &[u8]) -> Self {
        self.header(kind, name, link, content.len() as u64);
        self.content(content);
        self
    }

    fn file(self, name: &str, content: &[u8]) -> Self {
        self.member(EntryType::Regular, name, "", content)
    }

    fn link(self, kind: EntryType, name: &str, target: &str) -> Self {
        self.member(kind, name, target, b"")
    }

    fn header(&mut self, kind: EntryType, name: &str, link: &str, size: u64) {
        let mut header = Header::new_ustar();
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o6777);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1);
        header.set_size(size);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
    }

    fn content(&mut self, content: &[u8]) {
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
    }

    fn pax(self, records: &[(&str, &str)]) -> Self {
        self.member(EntryType::XHeader, "pax", "", &pax_records(records))
    }

    fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        self.0
    }
}

fn pax_records(records: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len() + 1;
        while length != rest.len() + length.to_string().len() {
            length = rest.len() + length.to_string().len();
        }
        bytes.extend_from_slice(format!("{length}{rest}").as_bytes());
    }
    bytes
}

struct Rig {
    client: AgentClient,
    directory: tempfile::TempDir,
    _guest: Guest,
}

impl Rig {
    async fn new() -> Self {
        let guest = Guest::start();
        let client = guest.connect().await;
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("outside")).unwrap();
        std::fs::write(directory.path().join("outside/canary"), "alive").unwrap();
        Self {
            client,
            directory,
            _guest: guest,
        }
    }

    fn outside(&self) -> String {
        format!("{}/outside", self.directory.path().display())
    }

    /// Unpacks into a fresh place, then looks whether anything outside has changed.
    async fn unpack(&self, name: &str, archive: Vec<u8>) -> Result<u64, StreamError> {
        let target = self.directory.path().join(name);
        let result = unpack(&self.client, &target, archive).await;
        self.check_outside(name);
        result
    }

    fn check_outside(&self, what: &str) {
        let outside = self.directory.path().join("outside");
        let names = std::fs::read_dir(&outside).unwrap().count();
        assert_eq!(names, 1, "{what} made something outside");
        let canary = std::fs::read(outside.join("canary")).unwrap();
        assert_eq!(canary, b"alive", "{what} wrote outside");
    }

    async fn refused(&self, what: &str, archive: Vec<u8>) {
        match self.unpack(what, archive).await {
            Err(StreamError::Failed(error)) => {
                let code = error.code;
                let is_refusal = matches!(
                    code,
                    GuestErrorCode::Invalid
                        | GuestErrorCode::IsDirectory
                        | GuestErrorCode::NotDirectory
                );
                assert!(is_refusal, "{what}: {error:?}");
            }
            other => panic!("{what} was not refused: {other:?}"),
        }
    }
}

#[tokio::test]
async fn paths_that_lead_out_are_refused() {
    let rig = Rig::new().await;
    let outside = rig.outside();
    let cases = [
        format!("{outside}/absolute"),
        "../outside/up".to_owned(),
        "a/../../outside/up".to_owned(),
        "a/..".to_owned(),
        "..".to_owned(),
    ];
    for (number, path) in cases.iter().enumerate() {
        let archive = Forged::default().file(path, b"out").end();
        rig.refused(&format!("path-{number}"), archive).await;
        let archive = Forged::default().link(EntryType::Directory, path, "").end();
        rig.refused(&format!("directory-{number}"), archive).await;
        let archive = Forged::default()
            .pax(&[("path", path)])
            .file("innocent", b"out")
            .end();
        rig.refused(&format!("pax-{number}"), archive).await;
        let long = format!("{path}\0");
        let archive = Forged::default()
            .member(EntryType::GNULongName, "././@LongLink", "", long.as_bytes())
            .file("innocent", b"out")
            .end();
        rig.refused(&format!("long-{number}"), archive).await;
    }
}

#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let rig = Rig::new().await;
    let outside = rig.outside();
    for (number, target) in [outside.as_str(), "../outside", "."].iter().enumerate() {
        let archive = Forged::default()
            .link(EntryType::Symlink, "l", target)
            .file("l/canary", b"dead")
            .end();
        rig.refused(&format!("through-{number}"), archive).await;
        let archive = Forged::default()
            .link(EntryType::Symlink, "l", target)
            .link(EntryType::Directory, "l/d", "")
            .end();
        rig.refused(&format!("directory-{number}"), archive).await;
        let archive = Forged::default()
            .link(EntryType::Symlink, "l", target)
            .link(EntryType::Directory, "l", "")
            .end();
        rig.refused(&format!("as-directory-{number}"), archive)
            .await;
    }
    // A file of the same name takes the place of the link, not of what the link leads to.
    let archive = Forged::default()
        .link(EntryType::Symlink, "l", &format!("{outside}/canary"))
        .file("l", b"dead")
        .end();
    rig.unpack("replaced", archive).await.unwrap();
    let place = rig.directory.path().join("replaced/l");
    assert_eq!(std::fs::read(place).unwrap(), b"dead");
    // The same for links that were there before.
    let before = rig.directory.path().join("before");
    std::fs::create_dir(&before).unwrap();
    symlink(&outside, before.join("l")).unwrap();
    let archive = Forged::default().file("l/canary", b"dead").end();
    rig.refused("before", archive).await;
}

#[tokio::test]
async fn hard_links_lead_only_to_files_of_the_same_place() {
    let rig = Rig::new().await;
    let outside = rig.outside();
    let hard = EntryType::Link;
    let cases = [
        Forged::default().link(hard, "h", &format!("{outside}/canary")),
        Forged::default().link(hard, "h", "../outside/canary"),
        Forged::default().link(hard, "h", "not/there"),
        Forged::default().link(hard, "h", "."),
        Forged::default()
            .link(EntryType::Symlink, "l", &outside)
            .link(hard, "h", "l/canary"),
        Forged::default()
            .link(EntryType::Symlink, "l", &format!("{outside}/canary"))
            .link(hard, "h", "l"),
    ];
    for (number, case) in cases.into_iter().enumerate() {
        // Then written to, which would change the file outside.
        let archive = case.file("h", b"dead").end();
        rig.refused(&format!("hard-{number}"), archive).await;
    }
    // A link to itself is no reason to lose it.
    let archive = Forged::default()
        .file("f", b"kept")
        .link(hard, "f", "./f")
        .end();
    rig.unpack("itself", archive).await.unwrap();
    let place = rig.directory.path().join("itself/f");
    assert_eq!(std::fs::read(place).unwrap(), b"kept");
}

#[tokio::test]
async fn devices_pipes_and_special_bits_do_not_come_through() {
    let rig = Rig::new().await;
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let name = format!("{kind:?}");
        let archive = Forged::default().link(kind, "node", "").end();
        rig.refused(&name, archive).await;
        assert!(!rig.directory.path().join(&name).join("node").exists());
    }
    let archive = Forged::default()
        .link(EntryType::Directory, "d", "")
        .file("d/f", b"x")
        .end();
    rig.unpack("bits", archive).await.unwrap();
    for name in ["d", "d/f"] {
        let metadata = std::fs::metadata(rig.directory.path().join("bits").join(name)).unwrap();
        let mode = std::os::unix::fs::MetadataExt::mode(&metadata);
        assert_eq!(mode & 0o7000, 0, "{name}");
    }
}

#[tokio::test]
async fn lies_about_sizes_are_refused() {
    let rig = Rig::new().await;
    let lie = |size: u64| {
        let mut forged = Forged::default();
        forged.header(EntryType::Regular, "f", "", size);
        forged.content(b"short");
        forged.end()
    };
    rig.refused("longer-than-there-is", lie(1 << 20)).await;
    rig.refused("over-the-limit", lie(6 << 30)).await;
    rig.refused("more-than-any-disk", lie((8 << 30) - 1)).await;
    let two_sizes = Forged::default()
        .pax(&[("size", "3")])
        .file("f", b"seven b");
    rig.refused("two-sizes", two_sizes.end()).await;
    let no_number = Forged::default().pax(&[("size", "-1")]).file("f", b"x");
    rig.refused("no-number", no_number.end()).await;
    let sparse = Forged::default()
        .pax(&[
            ("GNU.sparse.major", "1"),
            ("GNU.sparse.realsize", "99999999999"),
        ])
        .file("f", b"x");
    rig.refused("sparse", sparse.end()).await;
    let old_sparse = Forged::default().member(EntryType::GNUSparse, "f", "", b"x");
    rig.refused("old-sparse", old_sparse.end()).await;
    let global = Forged::default()
        .member(
            EntryType::XGlobalHeader,
            "g",
            "",
            &pax_records(&[("path", "x")]),
        )
        .file("f", b"x");
    rig.refused("global", global.end()).await;
    let directory = Forged::default().member(EntryType::Directory, "d", "", b"content");
    rig.refused("directory-with-content", directory.end()).await;
    let mut long = Forged::default();
    long.header(EntryType::GNULongName, "././@LongLink", "", 4 << 30);
    long.content(b"name");
    rig.refused("endless-name", long.end()).await;
    // One program ends the name at the NUL, another one reads on.
    let within = Forged::default()
        .member(EntryType::GNULongName, "././@LongLink", "", b"one\0two\0")
        .file("f", b"x");
    rig.refused("name-with-nul", within.end()).await;
    let twice = Forged::default()
        .member(EntryType::GNULongName, "././@LongLink", "", b"one\0")
        .pax(&[("path", "two")])
        .file("f", b"x");
    rig.refused("two-names", twice.end()).await;
    let last = Forged::default().file("f", b"x").member(
        EntryType::GNULongName,
        "././@LongLink",
        "",
        b"one\0",
    );
    rig.refused("name-of-nothing", last.end()).await;
    // To one program a name, to another a member of its own.
    let mut old = tar::Header::new_old();
    old.set_entry_type(EntryType::GNULongName);
    old.set_size(0);
    old.set_cksum();
    let whole = Forged::default().file("f", b"x").end();
    let whole = [old.as_bytes().as_slice(), &whole].concat();
    rig.refused("name-in-an-old-header", whole).await;
}

#[tokio::test]
async fn what_is_no_archive_is_refused_and_comments_are_fine() {
    let rig = Rig::new().await;
    let mut noise = vec![0x1F, 0x8B, 8];
    noise.resize(2000, 0x5A);
    rig.refused("noise", noise).await;
    let mut cut = Forged::default().file("f", &[7; 5000]).end();
    cut.truncate(3000);
    rig.refused("cut", cut).await;
    let over_directory = Forged::default()
        .file("d/f", b"x")
        .file("d", b"in the way of a directory");
    rig.refused("over-directory", over_directory.end()).await;
    let below_file = Forged::default()
        .file("f", b"x")
        .file("f/g", b"below a file");
    rig.refused("below-file", below_file.end()).await;
    assert_eq!(rig.unpack("empty", Vec::new()).await.unwrap(), 0);
    let commented = Forged::default()
        .member(
            EntryType::XGlobalHeader,
            "g",
            "",
            &pax_records(&[("comment", "0123456789abcdef")]),
        )
        .pax(&[("mtime", "1700000000.5"), ("SCHILY.xattr.user.x", "y")])
        .file("f", b"x");
    let mut archive = commented.end();
    archive.resize(10_240, 0);
    assert_eq!(rig.unpack("commented", archive).await.unwrap(), 10_240);
    assert!(rig.directory.path().join("commented/f").is_file());
}

#[tokio::test]
async fn a_refusal_is_told_while_more_is_being_sent() {
    let rig = Rig::new().await;
    let target = rig.directory.path().join("long");
    let path: &Path = &target;
    let mut file = rig
        .client
        .unpack_tree(path.to_str().unwrap(), Some("root"))
        .await
        .unwrap();
    let archive = Forged::default().file("/absolute", b"x").end();
    let result = within(async {
        file.write(archive.into()).await?;
        loop {
            file.write(vec![0; 1 << 20].into()).await?;
        }
        #[expect(unreachable_code, reason = "names the type of the block")]
        Ok::<(), StreamError>(())
    })
    .await;
    let Err(StreamError::Failed(error)) = result else {
        panic!("not failed: {result:?}")
    };
    assert_eq!(error.code, GuestErrorCode::Invalid);
}
