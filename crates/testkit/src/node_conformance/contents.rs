//! Claims about execs, snapshots, forks and volumes.

use dayfly_node_api::{
    AttachExec, EnsureVolume, ExecEvents, ForkOutcome, ForkRequest, NodeCalls, SnapshotRequest,
};
use dayfly_types::exec::ExecEvent;
use dayfly_types::volume::MountedVolume;
use dayfly_types::{DiskMib, ErrorCode, SandboxState, SnapshotId, VolumeName};
use futures::StreamExt;

use super::{Claim, Failure, Report, Subject, ensure, project, refused};

pub(super) async fn run(subject: &Subject, report: &mut Report) {
    let claim = "the output of a command can be read again, and a repeated one runs once";
    report.claim(claim, execs(subject)).await;
    let claim = "a snapshot that is repeated is the same, and is found until it is deleted";
    report.claim(claim, snapshots(subject)).await;
    let claim = "a sandbox goes back to snapshots of its own alone";
    report.claim(claim, rollback(subject)).await;
    let claim = "a sandbox is made from a snapshot that is there";
    report.claim(claim, from_snapshot(subject)).await;
    let claim = "a sandbox boots on the disk of a snapshot, and is one like any other";
    report.claim(claim, on_a_disk(subject)).await;
    let claim = "a fork makes every child, and finds them when it is repeated";
    report.claim(claim, fork(subject)).await;
    let claim = "a volume grows and does not shrink, and an absent one can be deleted";
    report.claim(claim, volumes(subject)).await;
    let claim = "a volume has one writer or readers, and stays while it is used";
    report.claim(claim, one_writer(subject)).await;
}

async fn drain(mut events: ExecEvents) -> Result<(Vec<u8>, Option<i32>), Failure> {
    let (mut output, mut code) = (Vec::new(), None);
    while let Some(event) = events.next().await {
        match event? {
            ExecEvent::Stdout(bytes) => output.extend_from_slice(&bytes),
            ExecEvent::Exited(end) => code = Some(end.exit.code),
            ExecEvent::Stderr(_) | ExecEvent::Gap(_) => {}
        }
    }
    Ok((output, code))
}

async fn execs(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let request = subject.exec()?;
    let exec = request.spec.exec_id.clone();
    let (output, code) = drain(node.exec(&id, request.clone()).await?).await?;
    let text = String::from_utf8_lossy(&output);
    ensure!(text.contains("hello") && code == Some(0), "{text} {code:?}");
    let again = drain(node.exec(&id, request).await?).await?;
    ensure!(again == (output.clone(), code), "{again:?}");
    let listed = node.list_execs(&id).await?;
    let count = listed.iter().filter(|one| one.exec_id == exec).count();
    ensure!(count == 1, "it is listed {count} times");
    let attach = AttachExec {
        exec: exec.clone(),
        stdout_offset: Some(2),
        stderr_offset: Some(0),
    };
    let (info, events) = node.attach_exec(&id, attach).await?;
    ensure!(info.stdout.end == output.len() as u64, "{info:?}");
    let (rest, code) = drain(events).await?;
    ensure!(rest == output[2..] && code == Some(0), "{rest:?} {code:?}");
    for _ in 0..2 {
        node.forget_exec(&id, &exec).await?;
    }
    refused(node.describe_exec(&id, &exec).await, ErrorCode::NotFound)?;
    refused(node.signal_exec(&id, &exec, 15).await, ErrorCode::NotFound)?;
    subject.delete([&id]).await
}

async fn snapshots(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let request = subject.snapshot()?;
    let made = node.snapshot(&id, request.clone()).await?;
    ensure!(made.sandbox == id && made.name == request.name, "{made:?}");
    let again = node.snapshot(&id, request.clone()).await?;
    ensure!(
        again.id == made.id && again.created_at == made.created_at,
        "{again:?}"
    );
    let found = node.find_snapshot(&request.id).await?;
    ensure!(found.project == project()?, "{found:?}");
    let listed = node.snapshots_of(&project()?).await?;
    ensure!(listed.iter().any(|one| one.id == request.id), "{listed:?}");
    // It outlives its sandbox.
    subject.delete([&id]).await?;
    node.find_snapshot(&request.id).await?;
    for _ in 0..2 {
        node.delete_snapshot(&request.id).await?;
    }
    refused(node.find_snapshot(&request.id).await, ErrorCode::NotFound)
}

async fn rollback(subject: &Subject) -> Claim {
    let node = &subject.node;
    let (id, other) = (subject.made().await?.id, subject.made().await?.id);
    let own = node.snapshot(&id, subject.snapshot()?).await?.id;
    let foreign = node.snapshot(&other, subject.snapshot()?).await?.id;
    let back = node.rollback(&id, &own).await?;
    ensure!(back.state == SandboxState::Running, "{back:?}");
    node.hibernate(&id).await?;
    let back = node.rollback(&id, &own).await?;
    ensure!(back.state == SandboxState::Running, "{back:?}");
    let refusal = node.rollback(&id, &foreign).await;
    refused(refusal, ErrorCode::InvalidRequest)?;
    let nothing = SnapshotId::parse("snap-of-nothing")?;
    refused(node.rollback(&id, &nothing).await, ErrorCode::NotFound)?;
    subject.delete([&id, &other]).await?;
    for snapshot in [own, foreign] {
        node.delete_snapshot(&snapshot).await?;
    }
    Ok(())
}

async fn from_snapshot(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let SnapshotRequest { id: snapshot, .. } = {
        let request = subject.snapshot()?;
        node.snapshot(&id, request.clone()).await?;
        request
    };
    let mut wanted = subject.wanted()?;
    wanted.from_snapshot = Some(snapshot.clone());
    let made = node.ensure_sandbox(wanted).await?;
    ensure!(made.from_snapshot.as_ref() == Some(&snapshot), "{made:?}");
    let mut lost = subject.wanted()?;
    lost.from_snapshot = Some(SnapshotId::parse("snap-of-nothing")?);
    refused(node.ensure_sandbox(lost).await, ErrorCode::NotFound)?;
    node.delete_snapshot(&snapshot).await?;
    subject.delete([&id, &made.id]).await
}

async fn on_a_disk(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let snapshot = node.snapshot(&id, subject.snapshot()?).await?.id;
    let wanted = subject.wanted()?;
    let made = node.boot_sandbox(&snapshot, wanted.clone()).await?;
    ensure!(made.state == SandboxState::Running, "{made:?}");
    ensure!(made.from_snapshot.as_ref() == Some(&snapshot), "{made:?}");
    let again = node.boot_sandbox(&snapshot, wanted).await?;
    ensure!(again.id == made.id, "{again:?}");
    let nothing = SnapshotId::parse("snap-of-nothing")?;
    let lost = node.boot_sandbox(&nothing, subject.wanted()?).await;
    refused(lost, ErrorCode::NotFound)?;
    let slept = node.hibernate(&made.id).await?;
    ensure!(slept.state == SandboxState::Hibernated, "{slept:?}");
    let woken = node.wake(&made.id).await?;
    ensure!(woken.state == SandboxState::Running, "{woken:?}");
    node.delete_snapshot(&snapshot).await?;
    subject.delete([&id, &made.id]).await
}

async fn fork(subject: &Subject) -> Claim {
    let node = &subject.node;
    let id = subject.made().await?.id;
    let children = vec![subject.wanted()?, subject.wanted()?];
    let ids: Vec<_> = children.iter().map(|child| child.id.clone()).collect();
    let request = ForkRequest {
        snapshot: subject.snapshot()?.id,
        children,
        all_or_nothing: true,
    };
    let first = node.fork(&id, request.clone()).await?;
    let again = node.fork(&id, request.clone()).await?;
    for report in [&first, &again] {
        let made = report
            .children
            .iter()
            .filter_map(|child| match &child.outcome {
                ForkOutcome::Made(made) => Some(made.id.clone()),
                ForkOutcome::Refused(_) => None,
            });
        ensure!(made.eq(ids.iter().cloned()), "{report:?}");
    }
    let nobody = subject.wanted()?.id;
    refused(node.fork(&nobody, request).await, ErrorCode::NotFound)?;
    subject.delete([&id]).await?;
    subject.delete(&ids).await
}

fn volume(name: &str, mebibytes: u64) -> Result<EnsureVolume, Failure> {
    Ok(EnsureVolume {
        project: project()?,
        name: VolumeName::parse(name)?,
        size: DiskMib::new(mebibytes)?,
    })
}

async fn volumes(subject: &Subject) -> Claim {
    let node = &subject.node;
    let (project, name) = (project()?, VolumeName::parse("grows")?);
    for mebibytes in [16, 16, 32, 32] {
        let made = node.ensure_volume(volume("grows", mebibytes)?).await?;
        ensure!(made.size == DiskMib::new(mebibytes)?, "{made:?}");
    }
    let smaller = node.ensure_volume(volume("grows", 16)?).await;
    refused(smaller, ErrorCode::AlreadyExists)?;
    let found = node.find_volume(&project, &name).await?;
    ensure!(
        found.writer.is_none() && found.readers.is_empty(),
        "{found:?}"
    );
    let own = node.volumes_of(&project).await?;
    ensure!(own.iter().any(|one| one.name == name), "{own:?}");
    for _ in 0..2 {
        node.delete_volume(&project, &name).await?;
    }
    let gone = node.find_volume(&project, &name).await;
    refused(gone, ErrorCode::NotFound)
}

async fn one_writer(subject: &Subject) -> Claim {
    let node = &subject.node;
    let (project, name) = (project()?, VolumeName::parse("held")?);
    node.ensure_volume(volume("held", 16)?).await?;
    let with = |read_only| {
        let mut wanted = subject.wanted()?;
        wanted.volumes = vec![MountedVolume {
            name: name.clone(),
            path: "/volumes/held".to_owned(),
            read_only,
        }];
        Ok::<_, Failure>(wanted)
    };
    let writer = node.ensure_sandbox(with(false)?).await?.id;
    let found = node.find_volume(&project, &name).await?;
    ensure!(found.writer.as_ref() == Some(&writer), "{found:?}");
    for read_only in [false, true] {
        let second = node.ensure_sandbox(with(read_only)?).await;
        refused(second, ErrorCode::VolumeBusy)?;
    }
    let kept = node.delete_volume(&project, &name).await;
    refused(kept, ErrorCode::VolumeBusy)?;
    subject.delete([&writer]).await?;
    let readers = [
        node.ensure_sandbox(with(true)?).await?.id,
        node.ensure_sandbox(with(true)?).await?.id,
    ];
    let third = node.ensure_sandbox(with(false)?).await;
    refused(third, ErrorCode::VolumeBusy)?;
    subject.delete(&readers).await?;
    node.delete_volume(&project, &name).await?;
    Ok(())
}
