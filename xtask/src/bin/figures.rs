//! Prints how large the product is and how it is cut. With `--names` also the public type names that
//! are declared more than once.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    use std::io::Write as _;
    // As Cargo says when it runs this: where it was built, another checkout may have been.
    let place = std::env::var_os("CARGO_MANIFEST_DIR");
    let root = place
        .map_or_else(|| PathBuf::from("xtask"), PathBuf::from)
        .join("..");
    let figures = xtask::figures::Figures::of(&root.canonicalize()?)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", figures.report())?;
    if std::env::args().any(|word| word == "--names") {
        for (name, places) in figures.declared_twice() {
            writeln!(out, "{name}: {places:?}")?;
        }
    }
    Ok(())
}
