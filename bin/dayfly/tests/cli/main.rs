//! The built program against a server with the shape of the public API.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod completion;
#[cfg(test)]
mod environment;
#[cfg(test)]
mod exec_and_cp;
#[cfg(test)]
mod explore;
#[cfg(test)]
mod files;
#[cfg(test)]
mod hints;
#[cfg(test)]
mod leaving;
#[cfg(test)]
mod login;
#[cfg(test)]
mod looks;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod network;
mod operators;
#[cfg(test)]
mod ports;
#[cfg(test)]
mod run;
#[cfg(test)]
mod sandboxes;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod states;
// Marked as test code, which may panic, for the sake of its callers.
#[cfg(test)]
mod support;
#[cfg(test)]
mod volumes;
