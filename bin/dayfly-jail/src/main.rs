//! Puts one engine process into its slot and leaves.
//!
//! Standard input holds a [`dayfly_host::JailSpec`], standard output takes one
//! [`dayfly_host::jail::JailReport`], standard error becomes the engine's output. The program is
//! root for the milliseconds that this takes. It has one thread, no runtime and no options, and it
//! must not know what an engine is.
//!
//! Order: join the control groups and the network namespace, make the other namespaces, build a
//! root and pivot into it, fork (the child is process 1 of its pid namespace), give up every
//! privilege, filter system calls, execute. The parent reports once the child has executed.
#![forbid(unsafe_code)]

mod enter;
mod failure;
mod filter;
mod privileges;
mod root;
mod run;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::run()
}
