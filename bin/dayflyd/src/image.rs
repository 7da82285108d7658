//! `dayflyd image`: carries built disk images of templates between hosts.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use dayfly_host::files::{sync, sync_directory};
use dayfly_installation::DataDirectory;
use dayfly_installation::output::print;
use dayfly_snapshots::{ArchivedImage, ImageCache, RecipeCatalog, image_archive};
use dayfly_types::TemplateName;

use crate::args::{ExportArguments, ImportArguments};

/// Stands for the standard input or output.
const STANDARD: &str = "-";

/// Writes the image of a template to a file, which is there whole or not at all.
pub(crate) fn export(arguments: &ExportArguments) -> Result<()> {
    let installation = &arguments.installation;
    let directory = DataDirectory::open(&installation.data_dir)?;
    let catalog = recipes(&directory)?;
    let name = TemplateName::parse(&arguments.name)
        .with_context(|| format!("{:?} is no name of a template", arguments.name))?;
    let recipe = catalog.real_name(&name).and_then(|real| catalog.get(real));
    let Some(recipe) = recipe else {
        let known: Vec<&str> = catalog.names().map(TemplateName::as_str).collect();
        bail!(
            "there is no template {name}; there are: {}",
            known.join(", ")
        );
    };
    let cache = cache(&directory, arguments.image_cache.clone());
    if arguments.file == Path::new(STANDARD) {
        let output = io::stdout().lock();
        ensure!(!output.is_terminal(), "an image is nothing for a terminal");
        let exported = image_archive::export(&cache, recipe, BufWriter::new(output))?;
        // The standard output is taken.
        writeln!(io::stderr(), "{}", render(&exported))?;
        return Ok(());
    }
    let exported = write_whole(&arguments.file, |file| {
        Ok(image_archive::export(&cache, recipe, BufWriter::new(file))?)
    })?;
    Ok(print(installation.json, &exported, render)?)
}

/// Writes a file beside its place, and gives it its name when all of it is on the disk.
fn write_whole<T>(path: &Path, write: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&beside)
        .with_context(|| format!("cannot make {}", beside.display()))?;
    let written = write(&file).and_then(|written| {
        sync(&file).context("cannot write the archive")?;
        std::fs::rename(&beside, path).context("cannot give the archive its name")?;
        Ok(written)
    });
    if written.is_err() {
        // What is not whole would be taken for an archive.
        let _ = std::fs::remove_file(&beside);
    } else {
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        sync_directory(parent.unwrap_or(Path::new("."))).context("cannot keep the archive")?;
    }
    written
}

/// Takes an image in.
pub(crate) fn import(arguments: &ImportArguments) -> Result<()> {
    let installation = &arguments.installation;
    let directory = prepared(&installation.data_dir)?;
    let catalog = recipes(&directory)?;
    let cache = cache(&directory, None);
    let find = |name: &TemplateName| catalog.get(name);
    let wanted = arguments.digest.as_deref();
    let imported = if arguments.file == Path::new(STANDARD) {
        image_archive::import(&cache, find, io::stdin().lock(), wanted)?
    } else {
        let file = File::open(&arguments.file)
            .with_context(|| format!("cannot open {}", arguments.file.display()))?;
        image_archive::import(&cache, find, file, wanted)?
    };
    Ok(print(installation.json, &imported, render)?)
}

/// A data directory, made as the first start would make it.
fn prepared(path: &Path) -> Result<DataDirectory> {
    let directory = DataDirectory::open(path);
    if directory.is_ok_and(|directory| directory.instance().is_ok_and(|found| found.is_some())) {
        return Ok(DataDirectory::open(path)?);
    }
    Ok(DataDirectory::create(path)?)
}

fn recipes(directory: &DataDirectory) -> Result<RecipeCatalog> {
    let recipes = directory.recipes();
    let own = recipes.exists().then_some(recipes.as_path());
    RecipeCatalog::load(own).context("cannot read the recipes")
}

fn cache(directory: &DataDirectory, shared: Option<PathBuf>) -> ImageCache {
    ImageCache::new(directory.node().join("images"), shared)
}

fn render(image: &ArchivedImage) -> String {
    let (template, bytes) = (&image.template, image.bytes);
    let entries = image.entries.join(", ");
    let digest = &image.digest;
    format!("template  {template}\nentries   {entries}\nbytes     {bytes}\ndigest    {digest}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("base.image");
        let failed = write_whole(&path, |mut file| {
            file.write_all(b"half")?;
            bail!("no more")
        });
        let failed: Result<()> = failed;
        assert!(failed.is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        write_whole(&path, |mut file| Ok(file.write_all(b"whole")?)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }
}
