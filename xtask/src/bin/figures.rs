//! Prints how large the product is and how it is cut. With `--names` also the public type names that
//! are declared more than once.

use std::path::Path;

fn main() -> std::io::Result<()> {
    use std::io::Write as _;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
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
