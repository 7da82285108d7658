//! Hostile images, read by the program itself under `strace`: each is refused with its reason or
//! becomes a disk, and no file outside the program's own directory is opened, made, linked or looked
//! at on the way, but for what every program reads to start.
//!
//! The program runs here as it does in its jail, without a privilege, but without the jail: what it
//! would reach is the whole host. What a registry that lies or leads elsewhere can do is in
//! `crates/oci/tests/registry`; here is that it is not even dialled.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod archives;
mod controls;
mod image;
mod layers;
mod network;
mod trace;
mod workshop;
