//! Builds an image from listings: every entry once, a directory after all its entries.
//!
//! Inodes are written as entries come.  Memory holds one open directory per level, with its names,
//! and the hardlink groups.  The inode numbers of `.` and `..` are patched in when the directory
//! and its parent have been placed.

use std::collections::HashMap;

use huai_format::entries::{Body, Entry, Leaves, decode_directory};
use huai_format::path::{RelPath, basename, parent, show};
use huai_git::error::{Error, Result};

use crate::erofs::blocks::{Blocks, ImageSink, offset};
use crate::erofs::children::{Child, Children, DirectoryBlock, Filling, merge};
use crate::erofs::ondisk::{
    Attributes, BLOCK, Data, INODE_BYTES, ROOT, ROOT_NID, SLOT, Type, superblock,
};

/// A lookup of the ids of a user and a group on this machine.
type Owners<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(u32, u32)> + 'a;

/// A directory whose subdirectories are still coming.
struct Open {
    path: RelPath,
    attributes: Attributes,
    leaves: Children,
    subdirectories: Children,
    /// The offsets at which its subdirectories refer to it.
    upwards: Vec<u64>,
}

/// A directory in its image; positions are offsets.
#[derive(Default)]
struct Placed {
    first: u64,
    blocks: u64,
    /// The offset of the number of `.`.
    own: u64,
    /// The offset of the number of `..`.
    above: u64,
}

/// A builder that takes listings in tree order, the root first.
pub struct ImageBuilder<P> {
    blocks: Blocks<P>,
    numbers: HashMap<(Vec<u8>, Vec<u8>), (u32, u32)>,
    /// The last owner and group, and their ids: most entries have the same.
    last: (Vec<u8>, Vec<u8>),
    pair: (u32, u32),
    /// The number of names of each hardlink group, by its leader.
    links: HashMap<RelPath, u32>,
    leaders: HashMap<RelPath, u64>,
    open: Vec<Open>,
    inodes: u64,
    entries: u64,
}

impl<P: ImageSink> ImageBuilder<P> {
    /// Begin with an empty file.
    pub fn new(to: P) -> Self {
        Self {
            blocks: Blocks::new(to),
            numbers: HashMap::new(),
            last: (Vec::new(), Vec::new()),
            pair: (0, 0),
            links: HashMap::new(),
            leaders: HashMap::new(),
            open: Vec::new(),
            inodes: 0,
            entries: 0,
        }
    }

    /// Return the number of paths so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Count the names of hardlink groups in a directory; all directories are counted before the
    /// first one is added.
    pub fn count_links(&mut self, path: &[u8], leaves: &[u8]) -> Result<()> {
        let path = RelPath::trusted(path.to_vec());
        for entry in Leaves::new(&path, leaves, b"") {
            if let Body::File {
                link: Some(leader), ..
            } = entry?.body
            {
                let names = self.links.entry(leader).or_insert(1);
                *names = names.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Add the next directory with its leaves; first writes the open directories that it is not in.
    pub fn add(
        &mut self,
        path: &[u8],
        attributes: &[u8],
        leaves: &[u8],
        owners: &mut Owners<'_>,
    ) -> Result<()> {
        let above = parent(path);
        while self.open.len() > 1
            && self
                .open
                .last()
                .is_some_and(|last| last.path.as_bytes() != above)
        {
            self.close()?;
        }
        let path = RelPath::trusted(path.to_vec());
        let entry = decode_directory(&path, attributes)?;
        let attributes = self.attributes(&entry, Type::Directory, owners)?;
        let mut names = Children::default();
        for entry in Leaves::new(&path, leaves, b"") {
            let entry = entry?;
            let (nid, kind) = self.place_leaf(&path, &entry, owners)?;
            names.add(&entry.name, nid, kind);
        }
        self.entries = self.entries.saturating_add(names.len() as u64);
        self.open.push(Open {
            path,
            attributes,
            leaves: names,
            subdirectories: Children::default(),
            upwards: Vec::new(),
        });
        Ok(())
    }

    /// Write the open directories, block 0 last; returns the number of blocks, or `None`, without block 0, if too many.
    pub fn finish(&mut self, uuid: &[u8; 16]) -> Result<Option<u32>> {
        while !self.open.is_empty() {
            self.close()?;
        }
        self.blocks.flush()?;
        let Ok(count) = u32::try_from(self.blocks.count) else {
            return Ok(None);
        };
        let first = superblock(&self.blocks.first, count, self.inodes, uuid);
        self.blocks.finish(&first)?;
        Ok(Some(count))
    }

    /// Place the inode of a leaf, unless it is a further name of a file; returns number and type of the inode.  Fails
    /// for a hardlink whose leader was not placed.
    fn place_leaf(
        &mut self,
        directory: &RelPath,
        entry: &Entry<'_>,
        owners: &mut Owners<'_>,
    ) -> Result<(u64, Type)> {
        match &entry.body {
            Body::Symlink { target } => {
                let attributes = self.attributes(entry, Type::Symlink, owners)?;
                Ok((self.place_symlink(&attributes, target)?, Type::Symlink))
            }
            Body::File {
                link: Some(leader), ..
            } => {
                let missing = || {
                    let path = directory.join(&entry.name);
                    Error::new("a hardlink to no file").within(show(path.as_bytes()))
                };
                let nid = self.leaders.get(leader).ok_or_else(missing)?;
                Ok((*nid, Type::Regular))
            }
            Body::File { size, .. } => {
                let mut attributes = self.attributes(entry, Type::Regular, owners)?;
                let path = (!self.links.is_empty()).then(|| directory.join(&entry.name));
                let names = path.as_ref().and_then(|path| self.links.get(path));
                attributes.links = names.copied().unwrap_or(1);
                let nid = self.place_inode(&attributes.file(*size))?;
                if let Some(path) = path.filter(|_| attributes.links > 1) {
                    self.leaders.insert(path, nid);
                }
                Ok((nid, Type::Regular))
            }
            Body::Directory => Err(Error::new("a directory among leaves")),
        }
    }

    /// Place a symlink, inlined if it fits into a block; returns its number.
    fn place_symlink(&mut self, attributes: &Attributes, target: &[u8]) -> Result<u64> {
        let size = target.len() as u64;
        if INODE_BYTES.saturating_add(target.len()) <= BLOCK {
            let inode = attributes.inode(Data::Inline, size, 0);
            return self.place_inode(&[&inode, target].concat());
        }
        let block = self.blocks.put_blocks(target)?;
        self.place_inode(&attributes.inode(Data::Plain, size, number(block)))
    }

    /// Place and count an inode; returns its number.
    fn place_inode(&mut self, record: &[u8]) -> Result<u64> {
        self.inodes = self.inodes.saturating_add(1);
        Ok(nid(self.blocks.put_record(record)?))
    }

    /// Write the innermost directory, add it to its parent, and patch the references to it.
    fn close(&mut self) -> Result<()> {
        let Some(mut directory) = self.open.pop() else {
            return Ok(());
        };
        let subdirectories = u32::try_from(directory.subdirectories.len()).unwrap_or(u32::MAX);
        directory.attributes.links = subdirectories.saturating_add(2);
        let is_root = self.open.is_empty();
        let (placed, nid) = place_directory(&mut self.blocks, &directory, is_root)?;
        self.entries = self.entries.saturating_add(1);
        self.inodes = self.inodes.saturating_add(1);
        for place in directory.upwards.iter().chain([&placed.own]) {
            self.blocks.patch(*place, &nid.to_le_bytes())?;
        }
        if let Some(above) = self.open.last_mut() {
            above.upwards.push(placed.above);
            let name = basename(directory.path.as_bytes());
            above.subdirectories.add(name, nid, Type::Directory);
        }
        Ok(())
    }

    /// Return the attributes of an inode; the ids of its owners are looked up once and kept.
    fn attributes(
        &mut self,
        entry: &Entry<'_>,
        kind: Type,
        owners: &mut Owners<'_>,
    ) -> Result<Attributes> {
        let is_last = *self.last.0 == *entry.owner && *self.last.1 == *entry.group;
        if self.numbers.is_empty() || !is_last {
            self.last = (entry.owner.to_vec(), entry.group.to_vec());
            if !self.numbers.contains_key(&self.last) {
                let pair = owners(&entry.owner, &entry.group)?;
                self.numbers.insert(self.last.clone(), pair);
            }
            self.pair = self.numbers.get(&self.last).copied().unwrap_or_default();
        }
        Ok(Attributes {
            kind,
            mode: entry.mode,
            uid: self.pair.0,
            gid: self.pair.1,
            mtime: entry.mtime,
            links: 1,
        })
    }
}

/// Write a directory: its entries in blocks of their own, the last one after the inode if it fits.  `.` and `..`
/// refer to the root: the caller patches them at the returned offsets.  Also returns the number of its inode; that of
/// the root is in block 0, which is written last.
fn place_directory<P: ImageSink>(
    blocks: &mut Blocks<P>,
    open: &Open,
    is_root: bool,
) -> Result<(Placed, u64)> {
    let dots = [&b"."[..], b".."].map(|name| Child {
        name,
        nid: ROOT_NID,
        kind: Type::Directory,
    });
    let leaves = merge(open.leaves.iter(), dots.into_iter());
    let mut placed = Placed::default();
    let mut filling = Filling::default();
    for child in merge(leaves, open.subdirectories.iter()) {
        if !filling.has_room(&child) {
            placed.add(&filling.finish_block(), blocks)?;
        }
        filling.add(&child);
    }
    let last = filling.finish_block();
    let filled = offset(placed.blocks).saturating_add(last.data.len() as u64);
    let begin = if is_root { ROOT } else { 0 };
    let end = begin
        .saturating_add(INODE_BYTES)
        .saturating_add(last.data.len());
    let is_inline = end <= BLOCK;
    if !is_inline {
        placed.add(&last, blocks)?;
    }
    let data = if is_inline { Data::Inline } else { Data::Plain };
    let mut record = open.attributes.inode(data, filled, number(placed.first));
    if is_inline {
        record.extend_from_slice(&last.data);
    }
    let at = if is_root {
        blocks.put_root(&record)
    } else {
        blocks.put_record(&record)?
    };
    if is_inline {
        placed.note(&last, at.saturating_add(INODE_BYTES as u64));
    }
    Ok((placed, nid(at)))
}

impl Placed {
    /// Add a block; the blocks of one directory are placed together, so they are consecutive.
    fn add<P: ImageSink>(&mut self, block: &DirectoryBlock, blocks: &mut Blocks<P>) -> Result<()> {
        let number = blocks.put_blocks(&block.data)?;
        if self.blocks == 0 {
            self.first = number;
        }
        self.blocks = self.blocks.saturating_add(1);
        self.note(block, offset(number));
        Ok(())
    }

    /// Store the offsets of `.` and `..` if they are in this block.
    fn note(&mut self, block: &DirectoryBlock, at: u64) {
        let place = |within: usize| at.saturating_add(within as u64);
        self.own = block.own.map_or(self.own, place);
        self.above = block.above.map_or(self.above, place);
    }
}

/// Return the number of the inode at an offset.
fn nid(at: u64) -> u64 {
    at.checked_div(SLOT as u64).unwrap_or_default()
}

/// Return the number of a block as an inode stores it; an image with more blocks is not finished.
fn number(block: u64) -> u32 {
    u32::try_from(block).unwrap_or(u32::MAX)
}
