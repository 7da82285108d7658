//! The templates that were ordered over the API: one file for each in a directory of the node.

use std::io;
use std::path::{Path, PathBuf};

use dayfly_host::files::{sync_directory, write_atomic};
use dayfly_types::limits::ORDERED_TEMPLATES_MAX;
use dayfly_types::{OrderedSource, OrderedTemplate, RunMeaning, TemplateName};

use crate::catalog::ResolvedRecipe;
use crate::image_address::{ImageAddress, InvalidImageAddress};
use crate::recipe::{
    ContainerImage, EntryPointUse, ImageRecipe, ImageSource, Recipe, SnapshotImage,
};

const ENDING: &str = "json";
const FILE_MODE: u32 = 0o600;
/// There is no older form of an order that could mean another disk.
const VERSION: u32 = 1;

/// Why an order was not taken.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error("the image is not in a registry: {address:?}")]
    NotInRegistry { address: String },
    #[error("{address:?} is not the address of an image")]
    Address {
        address: String,
        #[source]
        source: InvalidImageAddress,
    },
    #[error(
        "this node has {ORDERED_TEMPLATES_MAX} templates of projects, which is as many as it keeps"
    )]
    TooMany,
    #[error("cannot keep the order")]
    Keep(#[source] io::Error),
}

/// The directory of orders.
#[derive(Debug, Clone)]
pub struct OrderedTemplates {
    directory: PathBuf,
}

/// What the directory holds.
#[derive(Debug, Default)]
pub struct Orders {
    pub read: Vec<OrderedTemplate>,
    /// Files that are no orders, by the name that they may have meant. They stay where they are.
    pub unreadable: Vec<(String, io::Error)>,
}

impl OrderedTemplates {
    /// `directory` is made with the first order.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Every order. Blocks.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn all(&self) -> io::Result<Orders> {
        let mut orders = Orders::default();
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(orders),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|ending| ending != ENDING) {
                continue;
            }
            match read(&path) {
                Ok(order) => orders.read.push(order),
                Err(error) => {
                    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                    orders.unreadable.push((stem.into_owned(), error));
                }
            }
        }
        orders.read.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(orders)
    }

    /// Keeps an order, durably. The same one again changes nothing. Blocks.
    ///
    /// # Errors
    /// [`OrderError`].
    pub fn keep(&self, order: &OrderedTemplate) -> Result<(), OrderError> {
        resolve(order)?;
        let orders = self.all().map_err(OrderError::Keep)?;
        if orders.read.contains(order) {
            return Ok(());
        }
        if orders.read.len() + orders.unreadable.len() >= ORDERED_TEMPLATES_MAX {
            return Err(OrderError::TooMany);
        }
        let text = serde_json::to_vec_pretty(order).map_err(io::Error::from);
        let text = text.map_err(OrderError::Keep)?;
        std::fs::create_dir_all(&self.directory).map_err(OrderError::Keep)?;
        let written = write_atomic(&self.path(&order.name), &text, FILE_MODE);
        written.map_err(|error| OrderError::Keep(io::Error::other(error)))
    }

    /// Drops an order. An absent one is a success. Blocks.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn drop_order(&self, name: &TemplateName) -> io::Result<()> {
        match std::fs::remove_file(self.path(name)) {
            Ok(()) => sync_directory(&self.directory),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn path(&self, name: &TemplateName) -> PathBuf {
        self.directory.join(format!("{name}.{ENDING}"))
    }
}

fn read(path: &Path) -> io::Result<OrderedTemplate> {
    let order: OrderedTemplate =
        serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::from)?;
    let is_named = path
        .file_stem()
        .is_some_and(|stem| stem == order.name.as_str());
    if !is_named {
        let text = "the order is of another name than its file";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(order)
}

/// The recipe that an order stands for. Projects name images of registries: a path of this host is
/// none of their business.
pub(crate) fn resolve(order: &OrderedTemplate) -> Result<ResolvedRecipe, OrderError> {
    let image = match &order.source {
        OrderedSource::Image { project, address } => {
            let parsed = ImageAddress::parse(address).map_err(|source| OrderError::Address {
                address: address.clone(),
                source,
            })?;
            match parsed {
                ImageAddress::Registry(_) => ImageRecipe::Container(ContainerImage {
                    version: VERSION,
                    image: parsed,
                    project: Some(project.clone()),
                }),
                ImageAddress::Layout { .. } | ImageAddress::Archive { .. } => {
                    let address = address.clone();
                    return Err(OrderError::NotInRegistry { address });
                }
            }
        }
        OrderedSource::Snapshot {
            project,
            snapshot,
            about,
        } => ImageRecipe::Snapshot(SnapshotImage {
            project: project.clone(),
            snapshot: snapshot.clone(),
            about: about.clone(),
        }),
    };
    let entry_point = if order.starts_entry_point {
        EntryPointUse::Start
    } else {
        EntryPointUse::Ignore
    };
    let recipe = Recipe {
        name: order.name.clone(),
        description: order.description.clone(),
        version: VERSION,
        memory: order.memory,
        vcpus: order.vcpus,
        disk: order.disk,
        source: ImageSource::Own(image.clone()),
        warm: Vec::new(),
        start: Vec::new(),
        run: RunMeaning::default(),
        entry_point,
        contexts: Vec::new(),
    };
    Ok(ResolvedRecipe { recipe, image })
}

#[cfg(test)]
mod tests {
    use dayfly_types::{DiskMib, MemoryMib, ProjectId, Vcpus};

    use super::*;
    use crate::catalog::RecipeCatalog;

    fn order(name: &str, address: &str) -> OrderedTemplate {
        OrderedTemplate {
            name: TemplateName::parse(name).unwrap(),
            description: String::new(),
            source: OrderedSource::Image {
                project: ProjectId::parse("team").unwrap(),
                address: address.to_owned(),
            },
            memory: MemoryMib::new(512).unwrap(),
            vcpus: Vcpus::new(1).unwrap(),
            disk: DiskMib::new(2048).unwrap(),
            starts_entry_point: false,
        }
    }

    #[test]
    fn an_order_is_a_recipe_until_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let orders = OrderedTemplates::new(directory.path().join("ordered"));
        assert!(orders.all().unwrap().read.is_empty());
        let wanted = order("image.1", "registry.example/a:1");
        orders.keep(&wanted).unwrap();
        orders.keep(&wanted).unwrap();
        let catalog = RecipeCatalog::load(None).unwrap();
        let catalog = catalog.with_orders(orders.all().unwrap());
        let found = catalog.get(&wanted.name).unwrap();
        assert_eq!(found.recipe.entry_point, EntryPointUse::Ignore);
        assert_eq!(found.recipe.memory, wanted.memory);
        orders.drop_order(&wanted.name).unwrap();
        orders.drop_order(&wanted.name).unwrap();
        assert!(orders.all().unwrap().read.is_empty());
    }

    #[test]
    fn what_is_no_order_is_told_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let orders = OrderedTemplates::new(directory.path().to_owned());
        let path = directory.path().join("image.2.json");
        std::fs::write(&path, "{").unwrap();
        let all = orders.all().unwrap();
        assert_eq!((all.read.len(), all.unreadable.len()), (0, 1));
        let catalog = RecipeCatalog::load(None).unwrap().with_orders(all);
        let wrong: Vec<&str> = catalog.wrong().map(|(name, _)| name.as_str()).collect();
        assert_eq!(wrong, ["image.2"]);
        assert!(path.exists());
    }

    #[test]
    fn paths_of_the_host_cannot_be_ordered() {
        let directory = tempfile::tempdir().unwrap();
        let orders = OrderedTemplates::new(directory.path().to_owned());
        for address in ["oci:/srv/a", "docker-archive:/srv/a.tar"] {
            let refused = orders.keep(&order("image.3", address));
            assert!(matches!(refused, Err(OrderError::NotInRegistry { .. })));
        }
        let refused = orders.keep(&order("image.3", "debian"));
        assert!(matches!(refused, Err(OrderError::Address { .. })));
        assert!(orders.all().unwrap().read.is_empty());
    }
}
