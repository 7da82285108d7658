//! Migrations are compiled in; a new one must trigger a build.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
