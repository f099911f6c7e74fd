//! Writes listings as git objects (FORMAT.md, "Layout").
//!
//! Streaming: listings come in tree order, those of large directories in parts; objects are written
//! as soon as they are complete, and memory holds one open directory per level with its unfinished
//! manifest.  Every decision follows from names and counts alone, so equal trees give equal ids.

use huai_git::error::{Error, Result};
use huai_git::find::split_before;
use huai_git::object::Kind;
use huai_git::oid::Oid;
use huai_git::tree::{TreeItem, encode_tree};

use super::cut::{Cutter, Unit, is_file, write_whole};
use crate::escape::escape;
use crate::limits::{DIGEST_BYTES, INLINE_ENTRIES, SINGLE_LINES};
use crate::path::{basename, parent, show};
use crate::snapshots::{Key, ObjectWriter, Piece};

/// The first byte of the item of a directory with a tree of its own.
const SUBDIRECTORY: u8 = b'=';

/// The text of a directory without its subdirectories, or a part of it.
#[derive(Debug, Clone, Copy)]
pub struct ListingText<'a> {
    /// The path from the module's root.
    pub path: &'a [u8],
    /// Its own attribute fields without name and LF; empty if this continues the previous listing.
    pub attributes: &'a [u8],
    /// The lines of its files and symlinks, sorted by raw name.
    pub leaves: &'a [u8],
    /// 32 bytes for each file in `leaves`, zeros where absent, or none at all.
    pub digests: &'a [u8],
}

/// A writer that takes listings one by one, in tree order, the top directory first.
#[derive(Debug, Default)]
pub struct Layout {
    /// The path of the top directory; empty for the module's root.
    top: Vec<u8>,
    open: Vec<Open>,
}

impl Layout {
    /// Write the directory at `top`, which gets a tree of its own, and everything below it.
    pub fn below(top: &[u8]) -> Self {
        Self {
            top: top.to_vec(),
            open: Vec::new(),
        }
    }

    /// Add the next directory, after closing those that do not contain it; without attributes, add more leaves to the last
    /// directory.  An error unless listings come in tree order.
    pub fn add(&mut self, listing: &ListingText<'_>, writer: &mut impl ObjectWriter) -> Result<()> {
        if listing.attributes.is_empty() {
            return match self.open.last_mut() {
                Some(last) if last.path == listing.path && last.last.is_empty() => {
                    last.add_leaves(listing, writer)
                }
                _ => Err(out_of_order(listing.path)),
            };
        }
        self.reach(listing.path, writer)?;
        self.open.push(Open::new(listing, writer)?);
        Ok(())
    }

    /// Add a directory, not the root, with everything below it, as the git tree `tree`.  An error
    /// unless it comes in tree order.
    pub fn graft(&mut self, path: &[u8], tree: Oid, writer: &mut impl ObjectWriter) -> Result<()> {
        self.reach(path, writer)?;
        let above = self.open.last_mut().ok_or_else(|| out_of_order(path))?;
        above.children.push((item_name(basename(path)), tree));
        Ok(())
    }

    /// Begin to cut the manifest of the last directory: more than `SINGLE_LINES` lines follow.
    pub(crate) fn cut(&mut self, writer: &mut impl ObjectWriter) -> Result<()> {
        match self.open.last_mut() {
            Some(last) if last.cutter.is_none() => last.start_cutting(writer),
            _ => Ok(()),
        }
    }

    /// Keep a piece of the directory at `path`, which was `cut`, after closing those below it; its
    /// next unit begins another piece.
    pub(crate) fn keep(
        &mut self,
        path: &[u8],
        key: Key,
        piece: Piece,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        while self.open.len() > 1 && self.open.last().is_some_and(|last| last.path != path) {
            self.close(writer)?;
        }
        let cutter = self.open.last_mut().and_then(|last| last.cutter.as_mut());
        let cutter = cutter.ok_or_else(|| out_of_order(path))?;
        cutter.keep(key, piece, writer)
    }

    /// Close the directories that do not contain `path`; an error if it may not come next.
    fn reach(&mut self, path: &[u8], writer: &mut impl ObjectWriter) -> Result<()> {
        let above = parent(path);
        while self.open.len() > 1 && self.open.last().is_some_and(|last| last.path != above) {
            self.close(writer)?;
        }
        let fits = match self.open.last_mut() {
            None => path == self.top,
            Some(last) => !path.is_empty() && last.path == above && last.admits(path),
        };
        if fits {
            Ok(())
        } else {
            Err(out_of_order(path))
        }
    }

    /// Close and write everything; returns the id of the top directory's tree.
    pub fn finish(mut self, writer: &mut impl ObjectWriter) -> Result<Oid> {
        while self.open.len() > 1 {
            self.close(writer)?;
        }
        match self.open.pop() {
            Some(root) => root.write(writer),
            None => Err(Error::new("a tree without a root directory")),
        }
    }

    /// Close the innermost directory: inline it in its parent, or write its tree.
    fn close(&mut self, writer: &mut impl ObjectWriter) -> Result<()> {
        let Some(closed) = self.open.pop() else {
            return Ok(());
        };
        let Some(above) = self.open.last_mut() else {
            return Ok(());
        };
        let raw = basename(&closed.path);
        let name = escape(raw).into_owned();
        if closed.is_inline() {
            return above.add_directory(&name, closed.blocks, writer);
        }
        above.children.push((item_name(raw), closed.write(writer)?));
        Ok(())
    }
}

/// Return the name of a directory's own tree in its parent's tree.
fn item_name(raw: &[u8]) -> Vec<u8> {
    [&[SUBDIRECTORY], raw].concat()
}

fn out_of_order(path: &[u8]) -> Error {
    Error::new("listings are not in tree order").within(show(path))
}

/// A directory of a manifest that is not written yet.
#[derive(Debug)]
struct Block {
    /// Escaped path from the manifest's own directory; empty for that directory.
    relative: Vec<u8>,
    attributes: Vec<u8>,
    leaves: Vec<u8>,
    /// The digests: 32 bytes for each file, zeros if absent.
    column: Vec<u8>,
    lines: usize,
}

impl Block {
    /// Make the block of a listing whose leaves have `leaves` lines.
    fn new(listing: &ListingText<'_>, leaves: usize) -> Self {
        let mut block = Self {
            relative: Vec::new(),
            attributes: listing.attributes.to_vec(),
            leaves: Vec::new(),
            column: Vec::new(),
            lines: 1,
        };
        block.add_leaves(listing, leaves);
        block
    }

    /// Add the leaves of a listing, which has `leaves` lines.
    fn add_leaves(&mut self, listing: &ListingText<'_>, leaves: usize) {
        self.leaves.extend_from_slice(listing.leaves);
        self.column.extend_from_slice(listing.digests);
        if listing.digests.is_empty() {
            let absent = count_files(listing.leaves).saturating_mul(DIGEST_BYTES);
            let end = self.column.len().saturating_add(absent);
            self.column.resize(end, 0);
        }
        self.lines = self.lines.saturating_add(leaves);
    }

    fn append_to(&self, unit: &mut Unit) {
        put_line(&mut unit.text, &self.relative, &self.attributes);
        unit.text.extend_from_slice(&self.leaves);
        unit.column.extend_from_slice(&self.column);
        unit.lines = unit.lines.saturating_add(self.lines);
    }
}

/// Join several directories into a unit.
fn unit(blocks: &[Block]) -> Unit {
    let mut unit = Unit::default();
    for block in blocks {
        block.append_to(&mut unit);
    }
    unit
}

/// Append a directory's own line.
fn put_line(text: &mut Vec<u8>, relative: &[u8], attributes: &[u8]) {
    let name = if relative.is_empty() { b"." } else { relative };
    for part in [name, b"/\t", attributes, b"\n"] {
        text.extend_from_slice(part);
    }
}

/// A directory whose subdirectories are still coming.
#[derive(Debug)]
struct Open {
    path: Vec<u8>,
    /// The name of the last subdirectory.
    last: Vec<u8>,
    /// The items of its tree: subdirectories with trees of their own.
    children: Vec<(Vec<u8>, Oid)>,
    /// The content of its manifest, until it is cut.
    blocks: Vec<Block>,
    lines: usize,
    cutter: Option<Cutter>,
}

impl Open {
    /// Begin a directory; a manifest that is long already is cut from its first line on.
    fn new(listing: &ListingText<'_>, writer: &mut impl ObjectWriter) -> Result<Self> {
        let leaves = count_lines(listing.leaves);
        let mut open = Self {
            path: listing.path.to_vec(),
            last: Vec::new(),
            children: Vec::new(),
            blocks: Vec::new(),
            lines: leaves.saturating_add(1),
            cutter: None,
        };
        if open.lines > SINGLE_LINES {
            let (attributes, leaves) = (listing.attributes, listing.leaves);
            open.cutter = Some(cut(attributes, leaves, listing.digests, writer)?);
        } else {
            open.blocks.push(Block::new(listing, leaves));
        }
        Ok(open)
    }

    /// Add more leaves of this directory; begins to cut if needed.
    fn add_leaves(
        &mut self,
        listing: &ListingText<'_>,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let leaves = count_lines(listing.leaves);
        self.lines = self.lines.saturating_add(leaves);
        if let Some(cutter) = &mut self.cutter {
            return cutter.add_leaves(listing.leaves, listing.digests, writer);
        }
        if let Some(own) = self.blocks.first_mut() {
            own.add_leaves(listing, leaves);
        }
        if self.lines > SINGLE_LINES {
            self.start_cutting(writer)?;
        }
        Ok(())
    }

    /// True if a subdirectory may come now, because names grow; remembers its name.
    fn admits(&mut self, path: &[u8]) -> bool {
        let name = basename(path);
        let grows = *name > *self.last;
        self.last = name.to_vec();
        grows
    }

    /// Return true if it is inlined in its parent's manifest.
    fn is_inline(&self) -> bool {
        self.cutter.is_none() && self.children.is_empty() && self.lines <= INLINE_ENTRIES
    }

    /// Add the inlined subdirectory `name`, escaped, with all below it; begins to cut if needed.
    fn add_directory(
        &mut self,
        name: &[u8],
        blocks: Vec<Block>,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        for mut block in blocks {
            let slash: &[u8] = if block.relative.is_empty() { b"" } else { b"/" };
            block.relative = [name, slash, &block.relative].concat();
            self.lines = self.lines.saturating_add(block.lines);
            self.blocks.push(block);
        }
        if self.cutter.is_none() && self.lines > SINGLE_LINES {
            self.start_cutting(writer)?;
        }
        match &mut self.cutter {
            Some(cutter) => add_directories(cutter, &std::mem::take(&mut self.blocks), writer),
            None => Ok(()),
        }
    }

    /// Begin to cut the manifest, which is too long for one piece.
    fn start_cutting(&mut self, writer: &mut impl ObjectWriter) -> Result<()> {
        let below = self.blocks.split_off(1);
        for own in std::mem::replace(&mut self.blocks, below) {
            self.cutter = Some(cut(&own.attributes, &own.leaves, &own.column, writer)?);
        }
        Ok(())
    }

    /// Write this directory as a tree of its own.
    fn write(self, writer: &mut impl ObjectWriter) -> Result<Oid> {
        let own = if let Some(cutter) = self.cutter {
            cutter.finish(writer)?
        } else {
            write_whole(unit(&self.blocks), writer)?
        };
        let children = self.children.iter().map(|(name, oid)| TreeItem {
            name,
            oid: *oid,
            is_tree: true,
        });
        let own = own
            .into_iter()
            .map(|(name, oid, is_tree)| TreeItem { name, oid, is_tree });
        writer.write(Kind::Tree, &encode_tree(children.chain(own).collect()))
    }
}

/// Begin to cut the manifest of a directory, with its own line and leaves.
fn cut(
    attributes: &[u8],
    leaves: &[u8],
    digests: &[u8],
    writer: &mut impl ObjectWriter,
) -> Result<Cutter> {
    let mut cutter = Cutter::default();
    let mut own = Unit {
        lines: 1,
        ..Unit::default()
    };
    put_line(&mut own.text, b"", attributes);
    cutter.add(b"", &own, writer)?;
    cutter.add_leaves(leaves, digests, writer)?;
    Ok(cutter)
}

/// Add subdirectories, each with everything below it.
fn add_directories(
    cutter: &mut Cutter,
    blocks: &[Block],
    writer: &mut impl ObjectWriter,
) -> Result<()> {
    for group in blocks.chunk_by(|one, other| first(one) == first(other)) {
        let unit = unit(group);
        let name = group.first().map(first);
        let name = name.ok_or_else(|| Error::bug("a group of no directory"))?;
        cutter.add(&[name, b"/"].concat(), &unit, writer)?;
    }
    Ok(())
}

/// Return the first component of a block's relative path.
fn first(block: &Block) -> &[u8] {
    split_before(&block.relative, b'/').0
}

fn count_lines(leaves: &[u8]) -> usize {
    let lines = leaves.iter().map(|&byte| usize::from(byte == b'\n'));
    lines.sum()
}

fn count_files(leaves: &[u8]) -> usize {
    let lines = leaves.split_inclusive(|&byte| byte == b'\n');
    lines
        .filter(|line| is_file(split_before(line, b'\t').1))
        .count()
}
