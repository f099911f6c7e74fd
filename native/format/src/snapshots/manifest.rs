//! Splits a manifest into the directories that it describes (FORMAT.md, "Manifests").
//!
//! Works on text: it finds the lines of directories and checks their nesting; the other lines are
//! decoded on demand.

use std::ops::Range;

use huai_git::error::{Error, Result};
use huai_git::find::{position, split_before};

use crate::entries::digests::is_zero;
use crate::entries::find_leaf;
use crate::escape::{escape, unescape};
use crate::limits::{DIGEST_BYTES, INLINE_ENTRIES, LINE_BYTES, MANIFEST_LINES};
use crate::path::{RelPath, check_name, parent, show, split};
use crate::shared::Shared;

/// The text of one directory: its own attributes and its leaves, without subdirectories.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The path.
    pub path: RelPath,
    /// Its own attribute fields, without name and LF.
    pub attributes: Shared,
    /// The lines of its files and symlinks.
    pub leaves: Shared,
    /// The digests: 32 bytes for each file in `leaves`; empty if all are absent.
    pub digests: Shared,
}

impl Listing {
    /// Return the number of its files.
    pub fn files(&self) -> usize {
        count_files(&self.leaves)
    }
}

/// One directory inside a manifest.
#[derive(Debug, Clone, Default)]
pub struct ManifestBlock {
    /// The escaped path relative to the manifest's own directory; empty for that directory.
    pub relative: Shared,
    /// As in a `Listing`.
    pub attributes: Shared,
    /// As in a `Listing`.
    pub leaves: Shared,
    /// As in a `Listing`.
    pub digests: Shared,
    /// The number of lines of `leaves`.
    pub lines: usize,
    /// The number of lines of `leaves` with a place in the digest column.
    pub files: usize,
}

impl ManifestBlock {
    /// Return the number of bytes of its attributes, leaves and digests.
    pub fn size(&self) -> usize {
        let text = self.attributes.len().saturating_add(self.leaves.len());
        text.saturating_add(self.digests.len())
    }

    /// Return line and digest, empty if absent, of the leaf `name` of this directory; `None` if it is missing.
    pub fn leaf(&self, name: &[u8]) -> Result<Option<(Shared, Shared)>> {
        let Some(Range { start, end }) = find_leaf(&self.leaves, name)? else {
            return Ok(None);
        };
        let line = self.leaves.part(start, end);
        let before = count_files(&self.leaves.part(0, start));
        let place = before.saturating_mul(DIGEST_BYTES);
        let size = count_files(&line).saturating_mul(DIGEST_BYTES);
        let digest = self.digests.part(place, place.saturating_add(size));
        let present = Some(digest).filter(|digest| !is_zero(digest));
        Ok(Some((line, present.unwrap_or_default())))
    }

    /// Return the listing with its full path, for a manifest of `directory`.
    pub fn listing(&self, directory: &RelPath) -> Result<Listing> {
        Ok(Listing {
            path: directory.try_join(&unescape(&self.relative)?)?,
            attributes: self.attributes.clone(),
            leaves: self.leaves.clone(),
            digests: self.digests.clone(),
        })
    }
}

/// A subdirectory inside a manifest, with everything below it.
#[derive(Debug, Clone)]
pub struct InlineDirectory {
    /// Raw, one component.
    pub name: Vec<u8>,
    /// The blocks in tree order; the first is the subdirectory itself.
    pub blocks: Vec<ManifestBlock>,
}

/// A manifest, or one piece of a manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// True if it begins with the directory's own line, as the first piece does.
    pub is_first: bool,
    /// The part of the directory itself that is in this piece.
    pub own: ManifestBlock,
    /// The subdirectories, by name.
    pub inline: Vec<InlineDirectory>,
}

/// Return the escaped name with which a manifest begins; that of a subdirectory ends with a slash.
/// It is empty for `./`.  An error without a name.
pub fn piece_start(text: &[u8]) -> Result<&[u8]> {
    let head = text.get(..LINE_BYTES).unwrap_or(text);
    let tab = position(head, b'\t');
    match tab.and_then(|at| head.get(..at)) {
        Some(b"./") => Ok(b""),
        Some(start @ [_, ..]) => Ok(start),
        _ => Err(Error::new(
            "a manifest that is empty or begins with no name",
        )),
    }
}

impl Manifest {
    /// Split `text`; `column` is its digest column, or empty.  An error unless both fit together and are within the
    /// limits, and the lines of directories have valid names, nest and are in order; lines of leaves are not decoded.
    pub fn decode(text: &Shared, column: &Shared) -> Result<Self> {
        piece_start(text)?; // checks that it begins with a name
        let lines: usize = text.iter().map(|&byte| usize::from(byte == b'\n')).sum();
        if lines > MANIFEST_LINES {
            let rule = format!("more than {MANIFEST_LINES} lines in a manifest");
            return Err(Error::new(rule));
        }
        if text.last() != Some(&b'\n') {
            return Err(Error::new("a manifest that does not end in a newline"));
        }
        if !column.is_empty() && is_zero(column) {
            return Err(Error::new("a digest column without any digest"));
        }
        let mut blocks = blocks(text, column)?.into_iter().peekable();
        let mut own = blocks.next().unwrap_or_default();
        let first = blocks.next_if(|block| *block.relative == *b".");
        let is_first = first.is_some();
        if let Some(first) = first {
            if !own.leaves.is_empty() {
                return Err(Error::new("the directory's own line is not the first"));
            }
            own = first;
        }
        Ok(Self {
            is_first,
            own,
            inline: bundle(blocks)?,
        })
    }

    /// Return the inlined subdirectory `name`, if there is one.
    pub fn directory(&self, name: &[u8]) -> Option<&InlineDirectory> {
        self.inline.iter().find(|each| each.name == name)
    }

    /// Return the block of the directory at `path`, relative to the manifest's own directory.
    pub fn block(&self, path: &[u8]) -> Option<&ManifestBlock> {
        if path.is_empty() {
            return Some(&self.own);
        }
        let top = path.split(|&byte| byte == b'/').next().unwrap_or_default();
        let relative = escape(path);
        let mut blocks = self.directory(top)?.blocks.iter();
        blocks.find(|block| *block.relative == *relative)
    }

    /// Return the line and digest of the leaf at `rest`, relative to the manifest's own directory; `None` if it is missing.
    pub fn leaf(&self, rest: &[u8]) -> Result<Option<(Shared, Shared)>> {
        let (above, name) = split(rest);
        let block = self.block(above);
        block.map_or(Ok(None), |block| block.leaf(name))
    }

    /// Return the number of entries; the directory itself counts in the first piece.
    pub fn entries(&self) -> usize {
        let below = self
            .blocks_below()
            .map(|block| block.lines.saturating_add(1));
        below
            .fold(self.own.lines, usize::saturating_add)
            .saturating_add(self.is_first.into())
    }

    /// Return the number of bytes of its attributes, leaves and digests.
    pub fn size(&self) -> usize {
        self.blocks_below()
            .map(ManifestBlock::size)
            .fold(self.own.size(), usize::saturating_add)
    }

    fn blocks_below(&self) -> impl Iterator<Item = &ManifestBlock> {
        self.inline.iter().flat_map(|each| &each.blocks)
    }
}

/// Cut the text at the lines of directories; the first block has the lines before them.  Fails unless the column has
/// one digest for each file, or none.
fn blocks(text: &Shared, column: &Shared) -> Result<Vec<ManifestBlock>> {
    let mut blocks = Vec::new();
    let mut block = ManifestBlock::default();
    let (mut begin, mut position, mut digest) = (0, 0, 0);
    let mut rest: &[u8] = text;
    while !rest.is_empty() {
        let (line, after) = split_before(rest, b'\n');
        rest = after.get(1..).unwrap_or_default();
        let end = text.len().saturating_sub(rest.len());
        let (name, fields) = split_before(line, b'\t');
        if name.ends_with(b"/") && !fields.is_empty() {
            digest = finish(&mut block, text.part(begin, position), column, digest);
            blocks.push(std::mem::take(&mut block));
            let tab = usize::saturating_add(position, name.len());
            block.relative = text.part(position, tab.saturating_sub(1));
            block.attributes = text.part(tab.saturating_add(1), end.saturating_sub(1));
            begin = end;
        } else {
            block.lines = block.lines.saturating_add(1);
            let file = !fields.starts_with(b"\t>");
            block.files = block.files.saturating_add(file.into());
        }
        position = end;
    }
    digest = finish(&mut block, text.part(begin, position), column, digest);
    blocks.push(block);
    if !column.is_empty() && column.len() != digest {
        return Err(Error::new(
            "the digest column does not have one digest for each file",
        ));
    }
    Ok(blocks)
}

/// Set the leaves of `block`, and its digests at the offset `begin` of the column, none if all are zero; returns
/// their end.
fn finish(block: &mut ManifestBlock, leaves: Shared, column: &Shared, begin: usize) -> usize {
    let after = block
        .files
        .saturating_mul(DIGEST_BYTES)
        .saturating_add(begin);
    let digests = column.part(begin, after);
    block.leaves = leaves;
    block.digests = if is_zero(&digests) {
        Shared::default()
    } else {
        digests
    };
    after
}

/// Return the number of lines with a place in the digest column.
fn count_files(lines: &[u8]) -> usize {
    let lines = lines.split_inclusive(|&byte| byte == b'\n');
    let is_file = |line: &&[u8]| !split_before(line, b'\t').1.starts_with(b"\t>");
    lines.filter(is_file).count()
}

/// Check that the blocks nest, are in tree order and have valid names, and group them by their first name; refuses a
/// group of more than `INLINE_ENTRIES` entries.
fn bundle(blocks: impl Iterator<Item = ManifestBlock>) -> Result<Vec<InlineDirectory>> {
    let mut inline: Vec<InlineDirectory> = Vec::new();
    let mut above: Vec<Vec<u8>> = Vec::new();
    let mut former = Shared::default();
    for block in blocks {
        let name = nested_name(&block.relative, &former, &mut above).map_err(|error| {
            let start = block.relative.get(..200).unwrap_or(&block.relative);
            error.within(show(start))
        })?;
        former = block.relative.clone();
        if let Some(last) = inline.last_mut().filter(|_| above.len() > 1) {
            last.blocks.push(block);
        } else {
            inline.last().map_or(Ok(()), check_size)?;
            let blocks = vec![block];
            inline.push(InlineDirectory { name, blocks });
        }
    }
    inline.last().map_or(Ok(()), check_size)?;
    Ok(inline)
}

/// Return the raw last component of a directory's path; an error unless it is valid, and comes after the path
/// `former` in tree order, and below a listed directory.
///
/// `above` has the components of `former`, and then those of this path.
fn nested_name(relative: &[u8], former: &[u8], above: &mut Vec<Vec<u8>>) -> Result<Vec<u8>> {
    let misplaced = || Error::new("a directory without the one above it");
    let outside = parent(relative);
    let depth = relative.split(|&byte| byte == b'/').skip(1).count();
    let has_parent = depth == 0
        || former
            .strip_prefix(outside)
            .is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
    let slash = usize::from(depth > 0);
    let name = relative
        .get(outside.len().saturating_add(slash)..)
        .unwrap_or_default();
    if depth > above.len() {
        return Err(misplaced());
    }
    let name = unescape(name)?.into_owned();
    check_name(&name)?;
    if !has_parent {
        return Err(misplaced());
    }
    if above.get(depth).is_some_and(|beside| name <= *beside) {
        return Err(Error::new("directories out of order"));
    }
    above.truncate(depth);
    above.push(name.clone());
    Ok(name)
}

/// Return an error for an inlined directory with too many entries.
fn check_size(directory: &InlineDirectory) -> Result<()> {
    let lines = directory
        .blocks
        .iter()
        .map(|block| block.lines.saturating_add(1));
    if lines.fold(0, usize::saturating_add) > INLINE_ENTRIES {
        let rule = format!("a directory of more than {INLINE_ENTRIES} entries inside a manifest");
        return Err(Error::new(rule).within(show(&directory.name)));
    }
    Ok(())
}
