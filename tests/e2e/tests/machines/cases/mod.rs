//! The cases of `tests/cases`, which every client is driven by, for the Rust client and the
//! command line.
//!
//! What must come of a step is in the case alone; a driver only knows how its client is asked.

#[cfg(test)]
mod case_files;
#[cfg(test)]
mod case_run;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod rust_client;
