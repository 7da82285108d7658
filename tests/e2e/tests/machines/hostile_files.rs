//! Files, names and archives that mean harm, in real guests.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_client::{Client, FileBody, ListOptions, ReadOptions, RemoveOptions};
use dayfly_e2e::{
    Daemon, DaemonOptions, create, exec, output, output_of_root, patient, refusal, setting_or_skip,
};
use tar::EntryType as Kind;

#[tokio::test]
async fn hostile_names_links_pipes_and_devices_are_contained() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    let make = r#"python3 -c "
import os
os.mkdir('names'); os.chdir('names')
names = [b'new\nline', b'quote\"s\'', b'\xff\xfe', b'\xff\xfd', b'half\xc3', b'x' * 255, b' ', b'-rf', b'\x1b[2J', b'back\\\\slash']
for n in names: open(n, 'wb').write(n)
""#;
    let made = exec(&client, &id, make).await?;
    ensure!(made.exit_code == 0, "{made:?}");
    let listing = client.list_directory(&id, "names").await?;
    ensure!(listing.entries.len() == 10, "{listing:?}");
    let distinct: BTreeSet<&str> = listing.entries.iter().map(|e| e.name.as_str()).collect();
    ensure!(distinct.len() == 10);
    for entry in &listing.entries {
        ensure!(
            client.stat(&id, &entry.path).await?.size == entry.size,
            "{entry:?}"
        );
        let mut content = client.read_file(&id, &entry.path).await?;
        let first = content.next().await?.context("it is not empty")?;
        ensure!(first.len() as u64 == entry.size, "{entry:?}");
        client
            .remove_file(&id, &entry.path, &RemoveOptions::default())
            .await?;
    }
    ensure!(output(&client, &id, "ls -A names | wc -l").await? == "0");

    special_files(&client, &id).await?;
    daemon.finish().await
}

async fn special_files(client: &Client, id: &str) -> Result<()> {
    let make = "mkfifo pipe; ln -s /etc/shadow secret; ln -s / root; ln -s loop loop; \
                truncate -s 1T sparse; echo end >> sparse";
    output(client, id, make).await?;
    for (path, code) in [
        ("pipe", "invalid_request"),
        ("/dev/zero", "invalid_request"),
        ("secret", "forbidden"),
        ("loop", "invalid_request"),
        ("root", "invalid_request"),
        ("/proc/1/mem", "forbidden"),
    ] {
        let read = client.read_file(id, path);
        let read = tokio::time::timeout(patient(Duration::from_secs(20)), read).await;
        let read = read.with_context(|| format!("reading {path} hangs"))?;
        refusal(read, code).with_context(|| path.to_owned())?;
    }
    for path in ["pipe", "/dev/zero"] {
        let body = FileBody::from_bytes("x");
        refusal(client.write_file(id, path, body).await, "invalid_request")?;
    }
    // Far more than there is memory, or disk: only what is asked for moves.
    let end = ReadOptions {
        offset: 1 << 40,
        length: Some(3),
        user: None,
    };
    let mut content = client.read_file_with(id, "sparse", &end).await?;
    ensure!(content.next().await?.as_deref() == Some(b"end".as_slice()));
    let mut whole = client.read_file(id, "sparse").await?;
    ensure!(
        whole
            .next()
            .await?
            .is_some_and(|piece| piece.iter().all(|byte| *byte == 0))
    );
    drop(whole);
    // A link is listed as a link, and nothing behind it.
    let deep = ListOptions {
        depth: Some(64),
        ..ListOptions::default()
    };
    let listing = client.list_directory_with(id, "/workspace", &deep).await?;
    ensure!(
        listing
            .entries
            .iter()
            .all(|entry| !entry.name.starts_with("root/"))
    );
    // The places that all of these took are free again.
    for _ in 0..100 {
        refusal(client.read_file(id, "pipe").await, "invalid_request")?;
    }
    Ok(())
}

/// A member of an archive, without any check.
struct Member<'a> {
    kind: Kind,
    name: &'a str,
    link: &'a str,
    content: &'a [u8],
    /// What the header claims.
    size: u64,
}

fn file<'a>(name: &'a str, content: &'a [u8]) -> Member<'a> {
    Member {
        kind: Kind::Regular,
        name,
        link: "",
        content,
        size: content.len() as u64,
    }
}

fn other<'a>(kind: Kind, name: &'a str, link: &'a str) -> Member<'a> {
    Member {
        kind,
        link,
        ..file(name, b"")
    }
}

fn forged(members: &[Member<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for member in members {
        let mut header = tar::Header::new_ustar();
        let old = header.as_old_mut();
        old.name[..member.name.len()].copy_from_slice(member.name.as_bytes());
        old.linkname[..member.link.len()].copy_from_slice(member.link.as_bytes());
        header.set_entry_type(member.kind);
        header.set_mode(0o6755);
        header.set_size(member.size);
        header.set_cksum();
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(member.content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

/// Archives that want out, to `/out` of the guest or to a path of the host.
fn hostile(host: &str) -> Vec<(&'static str, Vec<u8>)> {
    let up = format!("../../../../../../../..{host}");
    let dead: &[u8] = b"dead";
    let lie = |size| Member {
        size,
        ..file("f", dead)
    };
    let out = other(Kind::Symlink, "l", "/out");
    let up_link = other(Kind::Symlink, "l", "../../../out");
    let sparse = Member {
        kind: Kind::GNUSparse,
        ..file("f", dead)
    };
    vec![
        ("dots", forged(&[file("../out/canary", dead)])),
        ("dots-to-host", forged(&[file(&up, dead)])),
        ("absolute", forged(&[file("/out/canary", dead)])),
        ("absolute-host", forged(&[file(host, dead)])),
        ("link", forged(&[out, file("l/canary", dead)])),
        (
            "link-up",
            forged(&[up_link, other(Kind::Directory, "l/new", "")]),
        ),
        (
            "hard-link",
            forged(&[other(Kind::Link, "h", "/out/canary"), file("h", dead)]),
        ),
        (
            "hard-link-by-link",
            forged(&[
                other(Kind::Symlink, "l", "/out"),
                other(Kind::Link, "h", "l/canary"),
            ]),
        ),
        ("device", forged(&[other(Kind::Char, "zero", "")])),
        ("block-device", forged(&[other(Kind::Block, "disk", "")])),
        ("pipe", forged(&[other(Kind::Fifo, "pipe", "")])),
        ("short", forged(&[lie(1 << 30)])),
        ("long", forged(&[lie(7 << 30)])),
        ("sparse", forged(&[sparse])),
        (
            "noise",
            b"\x1f\x8b\x08 this is no archive at all".repeat(100),
        ),
    ]
}

#[tokio::test]
async fn hostile_archives_change_nothing_outside_of_their_directory() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let id = create(&client, "base").await?.id;
    output_of_root(&client, &id, "mkdir -m 777 /out; echo alive > /out/canary").await?;
    // A name that would also exist on the host, were it ever resolved there.
    let host = daemon.path().join("escaped");
    let host = host.to_str().context("a plain path")?;
    for user in [None, Some("root")] {
        for (name, archive) in hostile(host) {
            let path = format!("/workspace/{}-{name}", user.unwrap_or("agent"));
            let body = FileBody::from_bytes(archive);
            let answer = client.upload_tree(&id, &path, user, body).await;
            refusal(answer, "invalid_request").context(name)?;
            let canary = output(&client, &id, "cat /out/canary; ls -A /out | wc -l").await?;
            ensure!(canary == "alive\n1", "{name} as {user:?}: {canary}");
            ensure!(!Path::new(host).exists(), "{name} reached the host");
        }
    }
    let made = "find / -xdev -path '*escaped*' 2>/dev/null; find /workspace -type b -o -type c \
                -o -type p -o -perm /6000; true";
    let found = output_of_root(&client, &id, made).await?;
    ensure!(found.is_empty(), "{found}");
    // One that behaves is unpacked as the user who asked, without special bits.
    let fine = forged(&[
        other(Kind::Directory, "d", ""),
        file("d/f", b"dead"),
        other(Kind::Link, "g", "d/f"),
    ]);
    client
        .upload_tree(&id, "fine", None, FileBody::from_bytes(fine))
        .await?;
    let about = output(&client, &id, "stat -c '%U %a' fine/d/f; cat fine/g").await?;
    ensure!(about == "agent 755\ndead", "{about}");
    daemon.finish().await
}
