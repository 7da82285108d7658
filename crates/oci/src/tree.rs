//! Layers laid over each other by the rules of images: one tree of files.
//!
//! Entries are taken in the order of the archive. A whiteout hides what the layers below have at its
//! path, and nothing that its own layer has brought there, before it or behind it. A directory
//! that is there stays and changes its owner; anything else makes room for what comes. A path that
//! leads over a link is followed within the image, as it would be in it, and never out of it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use dayfly_types::limits::{IMAGE_ENTRIES_MAX, IMAGE_LINKS_FOLLOWED_MAX, IMAGE_WALK_STEPS_MAX};

use crate::attributes::{self, InvalidAttribute};
use crate::entry::{Content, Device, EntryKind, EntryPath, LayerEntry, Metadata};

/// Why a layer does not fit over those below.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{path} is in something that is not a directory")]
    NotADirectory { path: EntryPath },
    #[error("the way to {path} leads over too many links")]
    Links { path: EntryPath },
    #[error("{path} is a link to {target}, which is not there or is a directory")]
    HardLink { path: EntryPath, target: EntryPath },
    #[error("{path} is a character device 0:0, which overlay file systems take for a whiteout")]
    OverlayWhiteout { path: EntryPath },
    #[error("{path} has an attribute that is not kept")]
    Attribute {
        path: EntryPath,
        #[source]
        source: InvalidAttribute,
    },
    #[error("the image has more than {IMAGE_ENTRIES_MAX} files and directories")]
    TooMany,
}

/// A file, a directory or whatever else has an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeNodeId(usize);

impl TreeNodeId {
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNode {
    pub kind: TreeNodeKind,
    pub metadata: Metadata,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeNodeKind {
    Directory(BTreeMap<Vec<u8>, TreeNodeId>),
    File(Content),
    Symlink(Vec<u8>),
    CharacterDevice(Device),
    BlockDevice(Device),
    Pipe,
}

/// A node that can be reached from the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedNode {
    pub node: TreeNodeId,
    /// The directory that it is in; of what has several names, the first that was found.
    pub parent: TreeNodeId,
    pub names: u32,
}

/// All layers so far.
#[derive(Debug)]
pub struct Tree {
    /// The root first. Some are not reached any more.
    nodes: Vec<TreeNode>,
    /// Names that the layer which is applied has brought, by their directory.
    brought: HashMap<TreeNodeId, HashSet<Vec<u8>>>,
    /// Names that may still be looked up on the ways of all entries.
    steps: usize,
}

const ROOT: TreeNodeId = TreeNodeId(0);
const DIRECTORY_MODE: u16 = 0o755;

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: vec![TreeNode::directory()],
            brought: HashMap::new(),
            steps: IMAGE_WALK_STEPS_MAX,
        }
    }
}

impl TreeNode {
    /// One that no entry speaks of, and something is in it.
    fn directory() -> Self {
        Self {
            kind: TreeNodeKind::Directory(BTreeMap::new()),
            metadata: Metadata {
                mode: DIRECTORY_MODE,
                ..Metadata::default()
            },
        }
    }
}

impl Tree {
    #[must_use]
    pub fn root(&self) -> TreeNodeId {
        ROOT
    }

    #[must_use]
    pub fn node(&self, id: TreeNodeId) -> &TreeNode {
        // Ids come from this tree alone, and nothing is ever removed.
        self.nodes.get(id.0).unwrap_or(&self.nodes[0])
    }

    /// How many nodes there are, with those that are not reached any more.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.children(ROOT).is_none_or(BTreeMap::is_empty)
    }

    /// Everything that has a name, each once, the root first and directories before what is in them.
    #[must_use]
    pub fn reached(&self) -> Vec<ReachedNode> {
        let mut places = vec![None; self.nodes.len()];
        let root = ReachedNode {
            node: ROOT,
            parent: ROOT,
            names: 1,
        };
        let mut reached = vec![root];
        let mut next = 0;
        while let Some(node) = reached.get(next).map(|one| one.node) {
            next += 1;
            for child in self.children(node).into_iter().flat_map(|all| all.values()) {
                let Some(place) = places.get_mut(child.0) else {
                    continue;
                };
                match place.and_then(|place: usize| reached.get_mut(place)) {
                    Some(known) => known.names = known.names.saturating_add(1),
                    None => {
                        *place = Some(reached.len());
                        reached.push(ReachedNode {
                            node: *child,
                            parent: node,
                            names: 1,
                        });
                    }
                }
            }
        }
        reached
    }

    /// Lays one more layer over the others, in the order of its archive. A whiteout hides what the
    /// layers below have, and nothing that its own layer has brought.
    ///
    /// # Errors
    /// [`ApplyError`]. Then some of the layer is there.
    pub fn apply(&mut self, layer: Vec<LayerEntry>) -> Result<(), ApplyError> {
        self.brought.clear();
        for entry in layer {
            match entry.kind {
                EntryKind::Whiteout => self.hide(&entry.path)?,
                EntryKind::Opaque => self.empty(&entry.path)?,
                EntryKind::Directory
                | EntryKind::File(_)
                | EntryKind::HardLink(_)
                | EntryKind::Symlink(_)
                | EntryKind::CharacterDevice(_)
                | EntryKind::BlockDevice(_)
                | EntryKind::Pipe => self.add(entry)?,
            }
        }
        Ok(())
    }

    fn hide(&mut self, path: &EntryPath) -> Result<(), ApplyError> {
        let Some((parent, name)) = path.split() else {
            return Ok(());
        };
        let Some(directory) = self.existing(parent, path)? else {
            return Ok(());
        };
        match self.child(directory, name) {
            // A directory that the layer wrote into keeps that; the rest of it is hidden.
            Some(child) if self.is_brought(directory, name) => self.empty_node(child),
            Some(_) => {
                if let Some(children) = self.children_mut(directory) {
                    children.remove(name);
                }
            }
            None => {}
        }
        Ok(())
    }

    fn empty(&mut self, path: &EntryPath) -> Result<(), ApplyError> {
        if let Some(directory) = self.existing(path.names(), path)? {
            self.empty_node(directory);
        }
        Ok(())
    }

    /// Takes everything away below a directory that the layer has not brought.
    fn empty_node(&mut self, directory: TreeNodeId) {
        let mut open = vec![directory];
        while let Some(here) = open.pop() {
            let names = self.children(here).into_iter().flat_map(|all| all.iter());
            let names: Vec<(Vec<u8>, TreeNodeId)> =
                names.map(|(name, id)| (name.clone(), *id)).collect();
            for (name, child) in names {
                if self.is_brought(here, &name) {
                    open.push(child);
                } else if let Some(children) = self.children_mut(here) {
                    children.remove(&name);
                }
            }
        }
    }

    fn is_brought(&self, directory: TreeNodeId, name: &[u8]) -> bool {
        let names = self.brought.get(&directory);
        names.is_some_and(|names| names.contains(name))
    }

    fn bring(&mut self, directory: TreeNodeId, name: &[u8]) {
        let names = self.brought.entry(directory).or_default();
        names.insert(name.to_vec());
    }

    fn add(&mut self, entry: LayerEntry) -> Result<(), ApplyError> {
        let LayerEntry {
            path,
            kind,
            metadata,
        } = entry;
        attributes::check(&metadata.attributes).map_err(|source| ApplyError::Attribute {
            path: path.clone(),
            source,
        })?;
        let kind = match kind {
            // Taken out before.
            EntryKind::Whiteout | EntryKind::Opaque => return Ok(()),
            EntryKind::Directory => return self.add_directory(&path, metadata),
            EntryKind::HardLink(target) => return self.link(&path, target),
            EntryKind::CharacterDevice(Device { major: 0, minor: 0 }) => {
                return Err(ApplyError::OverlayWhiteout { path });
            }
            EntryKind::File(content) => TreeNodeKind::File(content),
            EntryKind::Symlink(target) => TreeNodeKind::Symlink(target),
            EntryKind::CharacterDevice(device) => TreeNodeKind::CharacterDevice(device),
            EntryKind::BlockDevice(device) => TreeNodeKind::BlockDevice(device),
            EntryKind::Pipe => TreeNodeKind::Pipe,
        };
        let node = self.make(TreeNode { kind, metadata })?;
        self.place(&path, node)
    }

    fn add_directory(&mut self, path: &EntryPath, metadata: Metadata) -> Result<(), ApplyError> {
        let there = match path.split() {
            None => Some(ROOT),
            Some((parent, name)) => {
                let parent = self.made(parent, path)?;
                let child = self.child(parent, name);
                let child = child.filter(|child| self.children(*child).is_some());
                if child.is_some() {
                    self.bring(parent, name);
                }
                child
            }
        };
        if let Some(node) = there.and_then(|id| self.nodes.get_mut(id.0)) {
            node.metadata = metadata;
            return Ok(());
        }
        let node = self.make(TreeNode {
            metadata,
            ..TreeNode::directory()
        })?;
        self.place(path, node)
    }

    fn link(&mut self, path: &EntryPath, target: EntryPath) -> Result<(), ApplyError> {
        let found = match target.split() {
            None => None,
            Some((parent, name)) => {
                let parent = self.existing(parent, path)?;
                let children = parent.and_then(|parent| self.children(parent));
                children.and_then(|all| all.get(name)).copied()
            }
        };
        match found.filter(|id| self.children(*id).is_none()) {
            Some(id) => self.place(path, id),
            None => Err(ApplyError::HardLink {
                path: path.clone(),
                target,
            }),
        }
    }

    fn make(&mut self, node: TreeNode) -> Result<TreeNodeId, ApplyError> {
        if self.nodes.len() >= IMAGE_ENTRIES_MAX {
            return Err(ApplyError::TooMany);
        }
        self.nodes.push(node);
        Ok(TreeNodeId(self.nodes.len() - 1))
    }

    /// Gives a node a name, in the place of whatever has it.
    fn place(&mut self, path: &EntryPath, node: TreeNodeId) -> Result<(), ApplyError> {
        let Some((parent, name)) = path.split() else {
            return Err(ApplyError::NotADirectory { path: path.clone() });
        };
        let parent = self.made(parent, path)?;
        self.put(parent, name.to_vec(), node);
        Ok(())
    }

    fn put(&mut self, directory: TreeNodeId, name: Vec<u8>, node: TreeNodeId) {
        self.bring(directory, &name);
        if let Some(children) = self.children_mut(directory) {
            children.insert(name, node);
        }
    }

    /// The entries of a directory; nothing for what is none.
    #[must_use]
    pub fn children(&self, id: TreeNodeId) -> Option<&BTreeMap<Vec<u8>, TreeNodeId>> {
        match &self.node(id).kind {
            TreeNodeKind::Directory(children) => Some(children),
            TreeNodeKind::File(_)
            | TreeNodeKind::Symlink(_)
            | TreeNodeKind::CharacterDevice(_)
            | TreeNodeKind::BlockDevice(_)
            | TreeNodeKind::Pipe => None,
        }
    }

    fn children_mut(&mut self, id: TreeNodeId) -> Option<&mut BTreeMap<Vec<u8>, TreeNodeId>> {
        match &mut self.nodes.get_mut(id.0)?.kind {
            TreeNodeKind::Directory(children) => Some(children),
            TreeNodeKind::File(_)
            | TreeNodeKind::Symlink(_)
            | TreeNodeKind::CharacterDevice(_)
            | TreeNodeKind::BlockDevice(_)
            | TreeNodeKind::Pipe => None,
        }
    }

    /// The directory that names lead to, if all of it is there.
    fn existing(
        &mut self,
        names: &[Vec<u8>],
        path: &EntryPath,
    ) -> Result<Option<TreeNodeId>, ApplyError> {
        let mut walk = Walk::new(names, path);
        while let Some(name) = walk.next_name() {
            self.step(path)?;
            let Some(child) = self.child(walk.here(), &name) else {
                return Ok(None);
            };
            match &self.node(child).kind {
                TreeNodeKind::Directory(_) => walk.enter(child),
                TreeNodeKind::Symlink(target) => walk.follow(target)?,
                TreeNodeKind::File(_)
                | TreeNodeKind::CharacterDevice(_)
                | TreeNodeKind::BlockDevice(_)
                | TreeNodeKind::Pipe => return Ok(None),
            }
        }
        Ok(Some(walk.here()))
    }

    /// The directory that names lead to; what is missing of it is made.
    fn made(&mut self, names: &[Vec<u8>], path: &EntryPath) -> Result<TreeNodeId, ApplyError> {
        let mut walk = Walk::new(names, path);
        while let Some(name) = walk.next_name() {
            let here = walk.here();
            self.step(path)?;
            let child = match self.child(here, &name) {
                // The layer writes into it, so a whiteout of the layer leaves it.
                Some(child) => {
                    self.bring(here, &name);
                    child
                }
                None => {
                    let made = self.make(TreeNode::directory())?;
                    self.put(here, name, made);
                    made
                }
            };
            match &self.node(child).kind {
                TreeNodeKind::Directory(_) => walk.enter(child),
                TreeNodeKind::Symlink(target) => walk.follow(target)?,
                TreeNodeKind::File(_)
                | TreeNodeKind::CharacterDevice(_)
                | TreeNodeKind::BlockDevice(_)
                | TreeNodeKind::Pipe => {
                    return Err(ApplyError::NotADirectory { path: path.clone() });
                }
            }
        }
        Ok(walk.here())
    }

    /// One name more on some way. An image of many links in many links ends here.
    fn step(&mut self, path: &EntryPath) -> Result<(), ApplyError> {
        let left = self.steps.checked_sub(1);
        self.steps = left.ok_or_else(|| ApplyError::Links { path: path.clone() })?;
        Ok(())
    }

    fn child(&self, directory: TreeNodeId, name: &[u8]) -> Option<TreeNodeId> {
        self.children(directory)?.get(name).copied()
    }
}

/// A way through directories, with the links on it.
#[derive(Debug)]
struct Walk<'a> {
    /// From the root to where we are.
    stack: Vec<TreeNodeId>,
    names: VecDeque<Vec<u8>>,
    followed: usize,
    path: &'a EntryPath,
}

impl<'a> Walk<'a> {
    fn new(names: &[Vec<u8>], path: &'a EntryPath) -> Self {
        Self {
            stack: Vec::new(),
            names: names.iter().cloned().collect(),
            followed: 0,
            path,
        }
    }

    fn here(&self) -> TreeNodeId {
        self.stack.last().copied().unwrap_or(ROOT)
    }

    /// The next name that needs a look. Only targets of links have dots; above the root is the root.
    fn next_name(&mut self) -> Option<Vec<u8>> {
        loop {
            let name = self.names.pop_front()?;
            match name.as_slice() {
                b"" | b"." => {}
                b".." => {
                    self.stack.pop();
                }
                _ => return Some(name),
            }
        }
    }

    fn enter(&mut self, directory: TreeNodeId) {
        self.stack.push(directory);
    }

    fn follow(&mut self, target: &[u8]) -> Result<(), ApplyError> {
        self.followed += 1;
        if self.followed > IMAGE_LINKS_FOLLOWED_MAX {
            return Err(ApplyError::Links {
                path: self.path.clone(),
            });
        }
        if target.starts_with(b"/") {
            self.stack.clear();
        }
        for name in target.split(|byte| *byte == b'/').rev() {
            self.names.push_front(name.to_vec());
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
