//! The targets, each with the inputs that its corpus began with.

mod archive_members;
mod archive_tree;
mod capture_manifest;
mod copy_mark;
mod dns_question;
mod egress_messages;
mod gateway_head;
mod http_head;
mod image_layers;
mod journal_record;
mod monitor_line;
mod node_records;
mod proto_decode;
mod qcow2_layers;
mod template_manifest;
mod tls_hello;

/// Inputs by file name.
pub type Inputs = Vec<(String, Vec<u8>)>;

/// One reader of bytes that are not ours.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    /// Whose bytes it reads.
    pub source: &'static str,
    /// Panics when a promise is broken.
    pub check: fn(&[u8]),
    /// What the corpus begins with.
    pub seeds: fn() -> Inputs,
    /// How many mutations a test run tries: fewer where each touches a file system.
    pub iterations: u64,
}

macro_rules! target {
    ($name:ident, $source:literal, $iterations:literal) => {
        Target {
            name: stringify!($name),
            source: $source,
            check: $name::check,
            seeds: $name::seeds,
            iterations: $iterations,
        }
    };
}

/// Every target.
pub const TARGETS: [Target; 16] = [
    target!(proto_decode, "a guest", 1500),
    target!(dns_question, "a guest", 20_000),
    target!(http_head, "a guest", 20_000),
    target!(tls_hello, "a guest", 5000),
    target!(qcow2_layers, "an engine", 500),
    target!(monitor_line, "an engine", 20_000),
    target!(archive_tree, "a guest, on a user's machine", 300),
    target!(image_layers, "whoever made an image", 2000),
    target!(archive_members, "a user, in the guest", 5000),
    target!(gateway_head, "a visitor, and a service in a guest", 10_000),
    target!(node_records, "the node", 5000),
    target!(egress_messages, "the egress process", 10_000),
    target!(capture_manifest, "the disk", 2000),
    target!(template_manifest, "the disk", 2000),
    target!(journal_record, "the disk", 2000),
    target!(copy_mark, "a guest's memory", 5000),
];

/// The target with a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Texts as inputs, numbered.
fn texts(all: &[&str]) -> Inputs {
    let numbered = all.iter().enumerate();
    numbered
        .map(|(number, text)| (format!("seed-{number:02}"), text.as_bytes().to_vec()))
        .collect()
}
