//! Rules of this repository that a machine can check. They run as tests: `cargo test -p xtask`.
#![forbid(unsafe_code)]
