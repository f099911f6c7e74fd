//! An own directory of which only the changing pieces are read.
//!
//! The start of a piece follows from a name (FORMAT.md, "Cutting"), so an unchanged piece stays
//! even after a changing one, unless it began only because its predecessor was full.  The beginning
//! of each piece is read for its start; the lines of unchanged pieces are not decoded.

use std::collections::{BTreeSet, VecDeque};
use std::iter::Peekable;
use std::vec::IntoIter;

use huai_git::error::Result;
use huai_git::find::split_before;
use huai_git::oid::Oid;

use crate::amend::amendment::Amendment;
use crate::limits::SINGLE_LINES;
use crate::path::RelPath;
use crate::snapshots;
use crate::snapshots::{
    EntryLimit, InlineDirectory, Level, Listing, Located, ManifestBlock, ObjectReader, Snapshot,
    Start, join_blocks, piece_start,
};
use crate::write::begins_piece;

/// The next part of an own directory.
#[derive(Debug)]
pub(super) enum Step {
    /// A directory in its manifest; the own directory, or the beginning of it, comes first.
    Listing(Listing),
    /// More leaves of the own directory, before its subdirectories.
    Leaves(Listing),
    /// A subdirectory with a tree of its own, and its id.
    Own(RelPath, Oid),
    /// An unchanged piece of the directory, and the place of its first unit.
    Piece(RelPath, Located),
}

/// An own directory, read from front to end.
#[derive(Debug)]
pub(super) enum Reading {
    /// A reader of all pieces.
    Whole(Level),
    /// A reader of the changing pieces only.
    Sparse(Sparse),
}

impl Reading {
    /// Return the next part in tree order, if there is one.  Only changing pieces are read: they
    /// spend `limit`, and leaves of them change `until`.
    pub(super) fn next<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        limit: &mut EntryLimit,
    ) -> Result<Option<Step>> {
        match self {
            Self::Sparse(sparse) => sparse.next(snapshot, limit),
            Self::Whole(level) => Ok(level.next(snapshot, limit)?.map(|step| match step {
                snapshots::Step::Listing(listing) => Step::Listing(listing),
                snapshots::Step::Own(path, tree) => Step::Own(path, tree),
            })),
        }
    }
}

/// A reader of an own directory that is longer than its amendment.
#[derive(Debug)]
pub(super) struct Sparse {
    path: RelPath,
    /// The pieces, and whether each changes.
    pieces: Peekable<IntoIter<(Located, bool)>>,
    inline: VecDeque<InlineDirectory>,
    blocks: IntoIter<ManifestBlock>,
    children: Peekable<IntoIter<(Vec<u8>, Oid)>>,
    is_begun: bool,
    /// The name of the leaf that follows those that were read last; `None` if no leaves follow.
    until: Option<Vec<u8>>,
}

impl Sparse {
    /// Read the start of each piece of the directory at `path` with the git tree `tree`, and find
    /// those that change; `None` if all of it has to be read: for a whole amendment, a directory in
    /// one piece, and if few lines would stay unread.
    pub(super) fn open<R: ObjectReader>(
        snapshot: &Snapshot<R>,
        path: &RelPath,
        tree: Oid,
        amendment: &Amendment,
        limit: &mut EntryLimit,
    ) -> Result<Option<Self>> {
        if amendment.is_whole {
            return Ok(None);
        }
        let directory = snapshot.own_directory(path.clone(), tree)?;
        if directory.pieces.is_none() {
            return Ok(None);
        }
        let mut outlines = Vec::new();
        for (name, piece) in snapshot.piece_ids(&directory)? {
            let (head, start) = match name {
                Some(_) => snapshot.head(name, &piece, path)?,
                None => (Vec::new(), Start::Own),
            };
            outlines.push(Outline::of(Located { start, name, piece }, &head)?);
        }
        outlines.sort_by(|one, other| one.located.cmp(&other.located));
        let changing = changing(&outlines, &amendment.names()?);
        let numbered = outlines.iter().zip(&changing);
        let unchanged = numbered.filter(|(_, changes)| !**changes);
        if !are_long(snapshot, path, unchanged.map(|(outline, _)| outline))? {
            return Ok(None); // it may be too short to be cut from now on
        }
        limit.spend_trees(directory.children.len(), path)?;
        let pieces: Vec<_> = outlines
            .into_iter()
            .map(|outline| outline.located)
            .zip(changing)
            .collect();
        Ok(Some(Self {
            path: path.clone(),
            pieces: pieces.into_iter().peekable(),
            inline: VecDeque::new(),
            blocks: Vec::new().into_iter(),
            children: directory.children.into_iter().peekable(),
            is_begun: false,
            until: None,
        }))
    }

    /// Return the path of the directory.
    pub(super) fn path(&self) -> &RelPath {
        &self.path
    }

    /// Return the name of the leaf that follows those that were read last; `None` if no leaves follow.
    pub(super) fn until(&self) -> Option<&[u8]> {
        self.until.as_deref()
    }

    /// Return the next part in tree order, if there is one.
    fn next<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        limit: &mut EntryLimit,
    ) -> Result<Option<Step>> {
        if let Some(block) = self.blocks.next() {
            return Ok(Some(Step::Listing(block.listing(&self.path)?)));
        }
        while self.inline.is_empty() {
            if self.child_is_next() {
                break;
            }
            let Some((located, changes)) = self.pieces.next() else {
                break;
            };
            if !changes {
                let place = match &located.start {
                    Start::Directory(name) => self.path.join(name),
                    _ => self.path.clone(),
                };
                return Ok(Some(Step::Piece(place, located)));
            }
            if let Some(step) = self.read(snapshot, &located, limit)? {
                return Ok(Some(step));
            }
        }
        let is_inline = match (self.inline.front(), self.children.peek()) {
            (None, None) => return Ok(None),
            (Some(inline), Some((child, _))) => inline.name <= *child,
            (inline, _) => inline.is_some(),
        };
        if is_inline {
            let directory = self.inline.pop_front();
            let mut blocks = directory
                .map(|directory| directory.blocks)
                .unwrap_or_default()
                .into_iter();
            let first = blocks.next().map(|block| block.listing(&self.path));
            self.blocks = blocks;
            return Ok(first.transpose()?.map(Step::Listing));
        }
        let child = self.children.next();
        Ok(child.map(|(name, oid)| Step::Own(self.path.join(&name), oid)))
    }

    /// Return true if a subdirectory with a tree of its own comes before the next piece.
    fn child_is_next(&mut self) -> bool {
        match (self.pieces.peek(), self.children.peek()) {
            (Some((located, _)), Some((child, _))) => match &located.start {
                Start::Directory(name) => child < name,
                _ => false,
            },
            _ => false,
        }
    }

    /// Read a piece: return its leaves if it has any, set `until`, and queue its subdirectories;
    /// `limit` is spent.
    fn read<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        located: &Located,
        limit: &mut EntryLimit,
    ) -> Result<Option<Step>> {
        let manifest = snapshot.manifest(located.name, &located.piece, &self.path)?;
        limit.spend(manifest.entries(), &self.path)?;
        limit.spend_bytes(manifest.size(), &self.path)?;
        self.inline = manifest.inline.into();
        if matches!(located.start, Start::Directory(_)) {
            return Ok(None);
        }
        self.until = match self.pieces.peek() {
            Some((next, _)) => match &next.start {
                Start::Leaf(name) => Some(name.clone()),
                _ => None,
            },
            None => None,
        };
        let listing = join_blocks(self.path.clone(), &[manifest.own]);
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        Ok(Some(if is_first {
            Step::Listing(listing)
        } else {
            Step::Leaves(listing)
        }))
    }
}

/// The facts that decide if a piece may stay unread.
struct Outline {
    located: Located,
    /// The number of lines, or fewer.
    lines: usize,
    /// True if its first unit begins a piece after any predecessor; false also if its lines are not all known.
    is_sure: bool,
}

impl Outline {
    /// Describe a piece by the beginning of its text, which is empty for the first one.
    fn of(located: Located, head: &[u8]) -> Result<Self> {
        let end = head.iter().rposition(|&byte| byte == b'\n');
        let lines = end.and_then(|end| head.get(..=end)).unwrap_or_default();
        let is_sure = match located.name {
            None => false,
            Some(_) => begins_piece(piece_start(head)?, lines_of_first(head, lines)?),
        };
        Ok(Self {
            located,
            lines: count_lines(lines),
            is_sure,
        })
    }
}

fn count_lines(text: &[u8]) -> usize {
    text.iter().map(|&byte| usize::from(byte == b'\n')).sum()
}

/// Return true if pieces of the directory at `path` have more than `SINGLE_LINES` lines; reads as few of them as
/// that takes.
fn are_long<'a, R: ObjectReader>(
    snapshot: &Snapshot<R>,
    path: &RelPath,
    pieces: impl Iterator<Item = &'a Outline> + Clone,
) -> Result<bool> {
    let mut lines: usize = pieces.clone().map(|piece| piece.lines).sum();
    for piece in pieces {
        if lines > SINGLE_LINES {
            break;
        }
        let Located {
            name, piece: ids, ..
        } = &piece.located;
        let all = count_lines(&snapshot.manifest_text(*name, ids, path)?);
        lines = lines.saturating_add(all.saturating_sub(piece.lines));
    }
    Ok(lines > SINGLE_LINES)
}

/// Return the number of those of the first `lines` of a piece that are of its first unit.
fn lines_of_first(head: &[u8], lines: &[u8]) -> Result<usize> {
    let start = piece_start(head)?;
    if !start.ends_with(b"/") {
        return Ok(1);
    }
    let lines = lines.split_inclusive(|&byte| byte == b'\n');
    let is_other = |line: &&[u8]| {
        let (name, _) = split_before(line, b'\t');
        name.ends_with(b"/") && !name.starts_with(start)
    };
    Ok(lines.take_while(|line| !is_other(line)).count())
}

/// Return for each of the sorted pieces true if it changes when these names do; the first always does.
fn changing(pieces: &[Outline], names: &BTreeSet<Vec<u8>>) -> Vec<bool> {
    let mut changing: Vec<bool> = vec![false; pieces.len()];
    let mut mark = |place: usize| {
        if let Some(changes) = changing.get_mut(place) {
            *changes = true;
        }
    };
    mark(0); // holds the directory's own line
    for name in names {
        for start in [Start::Leaf(name.clone()), Start::Directory(name.clone())] {
            let place = pieces
                .partition_point(|piece| piece.located.start <= start)
                .saturating_sub(1);
            mark(place);
            if pieces
                .get(place)
                .is_some_and(|piece| piece.located.start == start)
            {
                mark(place.saturating_sub(1)); // may go on with what comes then
            }
        }
    }
    let mut before = false;
    for (piece, changes) in pieces.iter().zip(&mut changing) {
        *changes |= before && !piece.is_sure;
        before = *changes;
    }
    changing
}
