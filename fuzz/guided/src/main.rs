//! Runs one target under coverage guidance: `DAYFLY_FUZZ_TARGET=NAME dayfly-fuzz-guided CORPUS`.
//!
//! Everything behind that is libFuzzer's own. `fuzz/guided/run` calls it for every target.
#![no_main]

use std::sync::LazyLock;

use dayfly_fuzz::targets::{Target, find};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("DAYFLY_FUZZ_TARGET").unwrap_or_default();
    find(&name).unwrap_or_else(|| panic!("DAYFLY_FUZZ_TARGET={name:?} is no target"))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.check)(input));
