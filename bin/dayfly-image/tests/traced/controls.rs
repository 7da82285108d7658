//! That the watch sees what it is there to see.

use dayfly_types::container_image::{ImageJob, ImageJobOrigin, file_names};

use crate::image::{Layer, Tar, layout};
use crate::workshop::{ROOM, Workshop};

#[test]
fn an_honest_image_is_made_of_its_own_files() {
    let Some(workshop) = Workshop::new() else {
        return;
    };
    let bytes = Tar::new()
        .directory("etc/")
        .file("etc/name", b"good\n")
        .done();
    let outcome = workshop.run_layers(&[Layer::plain(bytes.clone()), Layer::gzip(&bytes)]);
    outcome.assert_made();
    let paths = outcome.trace.paths();
    for name in ["job.json", "image/index.json", "disk.img"] {
        let path = workshop.run_directory().join(name);
        assert!(paths.contains(&path), "{name} was not seen: {paths:?}");
    }
    assert!(workshop.disk().metadata().unwrap().len() > 0);
}

#[test]
fn the_watch_sees_a_file_outside_by_its_name_and_behind_a_link() {
    let Some(workshop) = Workshop::new() else {
        return;
    };
    let secret = workshop.outside().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let words = ["/bin/cat", "../outside/secret"];
    let (said, trace) = workshop.watch(&words);
    assert_eq!(said, "secret");
    let seen = trace.outside("/bin/cat".as_ref());
    assert!(seen.contains(&secret), "{seen:?}");
    assert!(
        seen.contains(&workshop.run_directory().join("../outside/secret")),
        "{seen:?}"
    );
    // The program itself, with its job behind a link.
    workshop.write_layout(&layout(&[]));
    let elsewhere = workshop.outside().join("job");
    let job = ImageJob {
        origin: ImageJobOrigin::Layout { tag: None },
        disk_bytes: ROOM,
    };
    std::fs::write(&elsewhere, serde_json::to_vec(&job).unwrap()).unwrap();
    let link = workshop.run_directory().join(file_names::JOB);
    std::os::unix::fs::symlink(&elsewhere, link).unwrap();
    assert_eq!(workshop.run().outside(), [elsewhere]);
}
