//! What the tests' own mirror of packages has: made on the host, served by the internet's outside.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use dayfly_netlab::site::Site;

/// Makes a wheel, a package for npm, and a repository that can be read as plain files.
const MAKE: &str = r#"
set -e
mkdir -p repo
cd repo
git init -q -b main
git config user.email agent@example.com
git config user.name agent
echo 'from the mirror' > README
git add .
git commit -q -m first
cd ..
git clone -q --bare repo bare
git -C bare repack -q -a -d
git -C bare update-server-info
mkdir package
echo '{"name":"tally-js","version":"1.0.0","main":"index.js"}' > package/package.json
echo 'module.exports = (a, b) => a + b;' > package/index.js
tar -czf tally-js-1.0.0.tgz package
python3 - <<'END'
import zipfile
with zipfile.ZipFile("tally-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tally.py", "def add(a, b):\n    return a + b\n")
    about = "tally-1.0.dist-info/"
    wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: tally\nVersion: 1.0\n")
    wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(about + "RECORD", "")
END
"#;

const BYTES: &str = "application/octet-stream";

/// Everything, as files of one site.
pub(crate) fn site(directory: &Path) -> Result<Site> {
    let made = Command::new("bash")
        .args(["-c", MAKE])
        .current_dir(directory)
        .output()?;
    ensure!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut site = Site::default();
    let wheel = "tally-1.0-py3-none-any.whl";
    let page = format!("<!DOCTYPE html><a href=\"/wheels/{wheel}\">{wheel}</a>\n");
    site.add("/simple/tally/", "text/html", page);
    site.add(
        format!("/wheels/{wheel}"),
        BYTES,
        std::fs::read(directory.join(wheel))?,
    );
    let package = r#"{"name":"tally-js","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":
        {"name":"tally-js","version":"1.0.0","main":"index.js",
         "dist":{"tarball":"https://npm.test/tally-js/-/tally-js-1.0.0.tgz"}}}}"#;
    site.add("/tally-js", "application/json", package);
    let tarball = std::fs::read(directory.join("tally-js-1.0.0.tgz"))?;
    site.add("/tally-js/-/tally-js-1.0.0.tgz", BYTES, tarball);
    add_tree(&mut site, &directory.join("bare"), "/repo")?;
    Ok(site)
}

fn add_tree(site: &mut Site, directory: &Path, path: &str) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{path}/{}", name.to_str().context("an odd name")?);
        if entry.file_type()?.is_dir() {
            add_tree(site, &entry.path(), &path)?;
        } else {
            site.add(path, BYTES, std::fs::read(entry.path())?);
        }
    }
    Ok(())
}
