//! The unequal parts of one directory's manifest on both sides of a comparison.
//!
//! A piece that both sides have covers the same names on both, and so does the range between two
//! starts that both sides have: only a few pieces are held at a time, and equal ones are not read.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::vec::IntoIter;

use huai_git::error::{Error, Result};

use crate::path::{RelPath, at, quote, show};
use crate::snapshots::{
    EntryLimit, InlineDirectory, Listing, Manifest, ObjectReader, OwnDirectory, Piece, PieceIds,
    PieceName, PieceTree, Snapshot, Start, join_blocks, unequal,
};

type Pieces = BTreeMap<PieceName, Piece>;
type Pair = (Option<PieceName>, Option<PieceName>);

/// One of the two snapshots, and its remaining limit.
#[derive(Debug)]
pub(super) struct ComparedSide<R> {
    /// The snapshot.
    pub(super) snapshot: Snapshot<R>,
    /// The entries that may still be read.
    pub(super) limit: EntryLimit,
}

impl<R: ObjectReader> ComparedSide<R> {
    /// Read one piece, and count its bytes and entries, without the directory itself; fails above the limit.
    fn manifest(&mut self, name: PieceName, piece: &Piece, place: &RelPath) -> Result<Manifest> {
        let text = self.snapshot.text(name, piece, place)?;
        let size = text.text.len().saturating_add(text.column.len());
        self.limit.spend_bytes(size, place)?;
        let manifest =
            Manifest::decode(&text.text, &text.column).map_err(|error| at(place, error))?;
        // The directory itself was counted before.
        let own = usize::from(manifest.is_first);
        self.limit
            .spend(manifest.entries().saturating_sub(own), place)?;
        Ok(manifest)
    }
}

/// Neighbouring pieces of one side.
#[derive(Debug)]
pub(super) struct PieceRun {
    /// The part of the directory that is in these pieces.
    pub(super) own: Listing,
    /// The subdirectories in these pieces, by raw name.
    pub(super) inline: BTreeMap<Vec<u8>, InlineDirectory>,
}

impl PieceRun {
    /// Join pieces; refuses a subdirectory that is in two of them.
    fn gather(manifests: Vec<Manifest>, path: &RelPath) -> Result<Self> {
        let mut parts = Vec::new();
        let mut inline = BTreeMap::new();
        for manifest in manifests {
            parts.push(manifest.own);
            for each in manifest.inline {
                if let Some(twin) = inline.insert(each.name.clone(), each) {
                    let name = quote(&show(&twin.name));
                    let rule = format!("{name} is listed twice");
                    return Err(at(path, Error::new(rule)));
                }
            }
        }
        let own = join_blocks(path.clone(), &parts);
        Ok(Self { own, inline })
    }
}

/// The unequal pieces of both sides, in runs that cover the same names on both.
#[derive(Debug)]
pub(super) struct Runs {
    pairs: Peekable<IntoIter<Pair>>,
    gone: Pieces,
    added: Pieces,
}

impl Runs {
    /// Find the runs of one directory; reads trees, and of pieces only their starts.
    pub(super) fn new<R: ObjectReader>(
        old: (&Snapshot<R>, &OwnDirectory),
        new: (&Snapshot<R>, &OwnDirectory),
    ) -> Result<Self> {
        let (gone, added) = unequal_pieces(old, new)?;
        let pairs = by_start(&old, &gone, &new, &added)?;
        Ok(Self {
            pairs: pairs.into_iter().peekable(),
            gone,
            added,
        })
    }

    /// Return the next run of both sides; `None` at the end.
    pub(super) fn next<R: ObjectReader>(
        &mut self,
        old: &mut ComparedSide<R>,
        new: &mut ComparedSide<R>,
        path: &RelPath,
    ) -> Result<Option<(PieceRun, PieceRun)>> {
        let Some(mut pair) = self.pairs.next() else {
            return Ok(None);
        };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        loop {
            if let Some((name, piece)) = pair.0.and_then(|name| self.gone.remove_entry(&name)) {
                before.push(old.manifest(name, &piece, path)?);
            }
            if let Some((name, piece)) = pair.1.and_then(|name| self.added.remove_entry(&name)) {
                after.push(new.manifest(name, &piece, path)?);
            }
            // Another run begins where a piece begins on both sides.
            let one_sided = |pair: &Pair| pair.0.is_none() || pair.1.is_none();
            let Some(next) = self.pairs.next_if(one_sided) else {
                break;
            };
            pair = next;
        }
        let before = PieceRun::gather(before, path)?;
        Ok(Some((before, PieceRun::gather(after, path)?)))
    }
}

/// Return the pieces sorted by their starts, paired where both sides begin a piece; a single piece
/// on each side is one pair.
fn by_start<R: ObjectReader>(
    old: &(&Snapshot<R>, &OwnDirectory),
    gone: &Pieces,
    new: &(&Snapshot<R>, &OwnDirectory),
    added: &Pieces,
) -> Result<Vec<Pair>> {
    if gone.keys().eq(added.keys()) {
        // Equal keys are equal starts: both sides are cut at the same places.
        return Ok(gone.keys().map(|&name| (Some(name), Some(name))).collect());
    }
    if gone.len() <= 1 && added.len() <= 1 {
        // There is nothing to sort, so the pieces need not be read for their starts.
        return Ok(vec![(
            gone.keys().next().copied(),
            added.keys().next().copied(),
        )]);
    }
    let mut starts: BTreeMap<Start, Pair> = BTreeMap::new();
    for (&name, piece) in gone {
        let start = old.0.start(name, piece, &old.1.path)?;
        starts.entry(start).or_default().0 = Some(name);
    }
    for (&name, piece) in added {
        let start = new.0.start(name, piece, &new.1.path)?;
        starts.entry(start).or_default().1 = Some(name);
    }
    Ok(starts.into_values().collect())
}

/// Return the pieces of each side that the other lacks, or has with other digests.
fn unequal_pieces<R: ObjectReader>(
    old: (&Snapshot<R>, &OwnDirectory),
    new: (&Snapshot<R>, &OwnDirectory),
) -> Result<(Pieces, Pieces)> {
    let (here, there) = (Trees::of(old), Trees::of(new));
    let (mut removed, mut added) = unequal(&here.texts, &there.texts)?;
    let (gone_columns, added_columns) = unequal(&here.columns, &there.columns)?;
    let columns: BTreeSet<_> = gone_columns
        .keys()
        .chain(added_columns.keys())
        .copied()
        .collect();
    let is_unequal = |key: &_| removed.contains_key(key) || added.contains_key(key);
    let column_only = columns
        .iter()
        .copied()
        .filter(|key| !is_unequal(key))
        .collect();
    removed.extend(here.texts.look_up(&column_only)?);
    added.extend(there.texts.look_up(&column_only)?);
    let mut removed = here.pieces(&removed, gone_columns, &columns)?;
    let mut added = there.pieces(&added, added_columns, &columns)?;
    if old.1.manifest != new.1.manifest {
        removed.insert(None, old.1.manifest);
        added.insert(None, new.1.manifest);
    }
    Ok((removed, added))
}

/// The two trees of pieces of one directory.
struct Trees<'a, R> {
    texts: PieceTree<'a, R>,
    columns: PieceTree<'a, R>,
    path: &'a RelPath,
}

impl<'a, R: ObjectReader> Trees<'a, R> {
    fn of((snapshot, directory): (&'a Snapshot<R>, &'a OwnDirectory)) -> Self {
        let path = &directory.path;
        Self {
            texts: PieceTree::texts(&snapshot.reader, directory.pieces, path),
            columns: PieceTree::columns(&snapshot.reader, directory.piece_digests, path),
            path,
        }
    }

    /// Join texts and columns to pieces; the columns of keys that are not `known` are looked up.  Fails for a column
    /// without its text.
    fn pieces(
        &self,
        texts: &PieceIds,
        mut columns: PieceIds,
        known: &BTreeSet<crate::snapshots::Key>,
    ) -> Result<Pieces> {
        let unknown = texts
            .keys()
            .copied()
            .filter(|key| !known.contains(key))
            .collect();
        columns.extend(self.columns.look_up(&unknown)?);
        if !columns.keys().all(|key| texts.contains_key(key)) {
            let rule = "a digest column without its manifest";
            return Err(at(self.path, Error::new(rule)));
        }
        let pieces = texts.iter().map(|(key, &manifest)| {
            let column = columns.get(key).copied();
            (Some(*key), Piece { manifest, column })
        });
        Ok(pieces.collect())
    }
}
