//! QEMU, for real, keeps the port's contract.
//!
//! `DAYFLY_TEST_ASSETS` names a directory with `kernel`, `initrd`, `base.img` and `disk0.raw`: a
//! guest that answers on its control port. Without it the tests say that they were left out, or
//! fail when `DAYFLY_REQUIRE_VM=1` says that they must run.

mod assets;
mod machine;

use dayfly_testkit::conformance;

use assets::Assets;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn qemu_is_conformant() {
    let Some(assets) = Assets::find() else { return };
    let setup = assets.set_up().await;
    let report = conformance::run(&setup.world()).await;
    println!("{report}");
    assert!(report.is_conformant(), "\n{report}");
}
