//! Builds the base image for real. Needs root, the build programs and a package archive, so it
//! runs only where real machines are required.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dayfly_snapshots::{
    ImageBuilder, ImageCache, ProgressReporter, RecipeCatalog, write_initial_ram_disk,
};
use dayfly_types::GuestDefaults;
use dayfly_types::TemplateName;

fn is_required() -> bool {
    std::env::var_os("DAYFLY_REQUIRE_VM").is_some_and(|value| value == "1")
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

#[tokio::test]
async fn abandoned_build_leaves_no_files_mounts_or_programs() {
    if !is_required() {
        println!("skipped: set DAYFLY_REQUIRE_VM=1 to build an image");
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let catalog = RecipeCatalog::load(None).unwrap();
    let base = catalog.get(&TemplateName::parse("base").unwrap()).unwrap();
    let cache = ImageCache::new(directory.path().join("images"), None);
    let builder = ImageBuilder::new(cache.clone());
    let (unpacking, mut is_unpacking) = tokio::sync::watch::channel(false);
    let progress = ProgressReporter::new(move |progress| {
        if progress.step == "unpacking packages" {
            unpacking.send_replace(true);
        }
    });
    tokio::select! {
        result = builder.ensure(&base.image, &progress) => panic!("not abandoned: {result:?}"),
        _ = is_unpacking.wait_for(|now| *now) => {}
    }
    let staging = directory.path().join("images/.staging");
    let deadline = Instant::now() + Duration::from_secs(30);
    // Killed programs may still be writing while the files are removed; the sweep gets the rest.
    while entries(&staging) > 0 || names_in_proc(directory.path()) > 0 {
        assert!(Instant::now() < deadline, "something is left of the build");
        cache.sweep().unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&*directory.path().to_string_lossy()));
}

/// How many processes have the directory on their command line.
fn names_in_proc(directory: &Path) -> usize {
    let text = directory.to_string_lossy().into_owned();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(&text))
        .count()
}

#[tokio::test]
async fn base_image_builds_and_is_reused() {
    if !is_required() {
        println!("skipped: set DAYFLY_REQUIRE_VM=1 to build an image");
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let catalog = RecipeCatalog::load(None).unwrap();
    let base = catalog.get(&TemplateName::parse("base").unwrap()).unwrap();
    let builder = ImageBuilder::new(ImageCache::from_environment(
        directory.path().join("images"),
    ));

    let seen = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&seen);
    let started = Instant::now();
    let progress = ProgressReporter::new(move |progress| {
        println!(
            "{:6.1} s {:3} % {}",
            started.elapsed().as_secs_f32(),
            progress.percent,
            progress.step
        );
        listener.lock().unwrap().push(progress.percent);
    });
    let parts = builder.ensure(&base.image, &progress).await.unwrap();
    println!("built in {:?}: {parts:?}", started.elapsed());
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(seen.is_sorted() && seen.last() == Some(&100), "{seen:?}");
    assert!(parts.base.last.metadata().unwrap().len() > 50 << 20);
    assert!(parts.modules.iter().any(|path| path.ends_with("erofs.ko")));

    let again = Instant::now();
    assert_eq!(
        builder
            .ensure(&base.image, &ProgressReporter::silent())
            .await
            .unwrap(),
        parts
    );
    assert!(
        again.elapsed().as_secs() < 10,
        "the second build took {:?}",
        again.elapsed()
    );
    println!("found again in {:?}", again.elapsed());

    // Any program will do as the agent: the archive is not booted here.
    let archive = directory.path().join("initrd");
    write_initial_ram_disk(
        &archive,
        Path::new("/bin/true"),
        &parts.modules,
        &GuestDefaults::default(),
    )
    .unwrap();
    assert!(archive.metadata().unwrap().len() > 1 << 20);
    assert_eq!(entries(&directory.path().join("images/.staging")), 0);
}
