//! Where everything goes, before anything is written: inodes name each other by place.

use std::fs::File;
use std::io;

use super::directory::{self, Listed};
use super::inode::{INODE_BYTES, Inode, Place, SLOT_BYTES, device_number, entry_type, type_bits};
use super::sink::Sink;
use crate::attributes;
use crate::data::{BLOCK, BLOCK_BYTES};
use crate::tree::{ReachedNode, Tree, TreeNodeId, TreeNodeKind};

/// One inode and what it holds.
#[derive(Debug)]
struct Planned {
    reached: ReachedNode,
    /// In bytes, from the first inode.
    place: u64,
    size: u64,
    /// The first of the blocks of its own, behind all inodes, and how many there are.
    block: u32,
    blocks: u32,
    has_tail: bool,
}

impl Planned {
    fn new(reached: ReachedNode) -> Self {
        Self {
            reached,
            place: 0,
            size: 0,
            block: 0,
            blocks: 0,
            has_tail: false,
        }
    }
}

#[derive(Debug)]
pub(super) struct Plan<'a> {
    tree: &'a Tree,
    first: u32,
    /// Behind the inodes.
    blocks: u32,
    end: u32,
    inodes: Vec<Planned>,
    /// For each node of the tree the number of its inode.
    numbers: Vec<u64>,
}

impl<'a> Plan<'a> {
    /// Nothing when there is no room for all of it.
    pub(super) fn new(tree: &'a Tree, first: u32) -> Option<Self> {
        let mut plan = Self {
            tree,
            first,
            blocks: first,
            end: first,
            inodes: tree.reached().into_iter().map(Planned::new).collect(),
            numbers: vec![0; tree.len()],
        };
        plan.place_inodes()?;
        plan.place_blocks()?;
        Some(plan)
    }

    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// The number of blocks of the whole.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// The superblock has two bytes for it; it is the first inode.
    pub(super) fn root(&self) -> u16 {
        0
    }

    pub(super) fn inodes(&self) -> u64 {
        self.inodes.len() as u64
    }

    /// Puts inodes one behind the other. The end of a directory or a link follows its inode, if it
    /// is in one block there.
    fn place_inodes(&mut self) -> Option<()> {
        let mut next = 0_u64;
        for one in &mut self.inodes {
            let node = self.tree.node(one.reached.node);
            let own = INODE_BYTES + attributes::encode(&node.metadata.attributes).len() as u64;
            let (size, is_own) = held(self.tree, one.reached.node);
            one.size = size;
            let tail = if is_own { size % BLOCK_BYTES } else { 0 };
            // Kernels before 6.12 look for the end of a link in the block of its inode.
            one.has_tail = tail > 0 && own + tail <= BLOCK_BYTES;
            let tail = if one.has_tail { tail } else { 0 };
            let fits = |place: u64| {
                let in_block = place % BLOCK_BYTES;
                let together = if tail == 0 { INODE_BYTES } else { own + tail };
                in_block + together <= BLOCK_BYTES
            };
            one.place = if fits(next) {
                next
            } else {
                next.next_multiple_of(BLOCK_BYTES)
            };
            if is_own {
                let whole = size / BLOCK_BYTES;
                let all = size.div_ceil(BLOCK_BYTES);
                one.blocks = u32::try_from(if one.has_tail { whole } else { all }).ok()?;
            }
            if let Some(number) = self.numbers.get_mut(one.reached.node.index()) {
                *number = one.place / SLOT_BYTES;
            }
            next = (one.place + own + tail).next_multiple_of(SLOT_BYTES);
        }
        let blocks = u32::try_from(next.div_ceil(BLOCK_BYTES)).ok()?;
        self.blocks = self.first.checked_add(blocks)?;
        Some(())
    }

    fn place_blocks(&mut self) -> Option<()> {
        let mut next = self.blocks;
        for one in &mut self.inodes {
            one.block = next;
            next = next.checked_add(one.blocks)?;
        }
        self.end = next;
        Some(())
    }

    /// Writes all inodes and what they hold, but for the contents of files.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let base = u64::from(self.first) * BLOCK_BYTES;
        let mut inodes = Sink::new(file, base);
        let mut blocks = Sink::new(file, u64::from(self.blocks) * BLOCK_BYTES);
        for (index, one) in self.inodes.iter().enumerate() {
            let number = u32::try_from(index + 1).map_err(io::Error::other)?;
            let metadata = &self.tree.node(one.reached.node).metadata;
            inodes.go_to(base + one.place)?;
            inodes.write(&self.inode(one, number).encode())?;
            inodes.write(&attributes::encode(&metadata.attributes))?;
            let held = self.bytes_of(one);
            let in_blocks = held.len().min(one.blocks as usize * BLOCK);
            let (in_blocks, tail) = held.split_at(in_blocks);
            inodes.write(tail)?;
            blocks.go_to(u64::from(one.block) * BLOCK_BYTES)?;
            blocks.write(in_blocks)?;
        }
        inodes.flush()?;
        blocks.flush()
    }

    fn inode(&self, one: &Planned, number: u32) -> Inode {
        let node = self.tree.node(one.reached.node);
        let metadata = &node.metadata;
        let place = match &node.kind {
            TreeNodeKind::File(content) => Place::Blocks(content.block),
            TreeNodeKind::CharacterDevice(device) | TreeNodeKind::BlockDevice(device) => {
                Place::Device(device_number(*device))
            }
            TreeNodeKind::Directory(_) | TreeNodeKind::Symlink(_) if one.has_tail => {
                Place::BlocksAndTail(one.block)
            }
            TreeNodeKind::Directory(_) | TreeNodeKind::Symlink(_) | TreeNodeKind::Pipe => {
                Place::Blocks(one.block)
            }
        };
        Inode {
            attributes: attributes::count(attributes::encode(&metadata.attributes).len()),
            mode: metadata.mode | type_bits(&node.kind),
            size: one.size,
            place,
            number,
            uid: metadata.uid,
            gid: metadata.gid,
            modified: metadata.modified,
            links: self.links(one.reached),
        }
    }

    /// A directory is named by itself, by the one above, and by each one in it.
    fn links(&self, reached: ReachedNode) -> u32 {
        match self.tree.children(reached.node) {
            None => reached.names,
            Some(children) => {
                let is_directory = |child: &&TreeNodeId| self.tree.children(**child).is_some();
                let within = children.values().filter(is_directory).count();
                u32::try_from(within).unwrap_or(u32::MAX).saturating_add(2)
            }
        }
    }

    fn bytes_of(&self, one: &Planned) -> Vec<u8> {
        match &self.tree.node(one.reached.node).kind {
            TreeNodeKind::Symlink(target) => target.clone(),
            TreeNodeKind::Directory(_) => self.listing(one),
            TreeNodeKind::File(_)
            | TreeNodeKind::CharacterDevice(_)
            | TreeNodeKind::BlockDevice(_)
            | TreeNodeKind::Pipe => Vec::new(),
        }
    }

    fn listing(&self, one: &Planned) -> Vec<u8> {
        let listed = |name: &'a [u8], node: TreeNodeId| Listed {
            name,
            inode: self.numbers.get(node.index()).copied().unwrap_or(0),
            kind: entry_type(&self.tree.node(node).kind),
        };
        let children = self.tree.children(one.reached.node).into_iter().flatten();
        let mut entries = vec![
            listed(b".", one.reached.node),
            listed(b"..", one.reached.parent),
        ];
        entries.extend(children.map(|(name, child)| listed(name, *child)));
        entries.sort_unstable_by_key(|entry| entry.name);
        directory::encode(&entries)
    }
}

/// How many bytes a node holds, and whether they are ours to place.
fn held(tree: &Tree, node: TreeNodeId) -> (u64, bool) {
    match &tree.node(node).kind {
        TreeNodeKind::File(content) => (content.length, false),
        TreeNodeKind::Symlink(target) => (target.len() as u64, true),
        TreeNodeKind::Directory(children) => {
            let mut names: Vec<&[u8]> = vec![b".", b".."];
            names.extend(children.keys().map(Vec::as_slice));
            names.sort_unstable();
            (directory::size(names.into_iter()), true)
        }
        TreeNodeKind::CharacterDevice(_) | TreeNodeKind::BlockDevice(_) | TreeNodeKind::Pipe => {
            (0, false)
        }
    }
}
