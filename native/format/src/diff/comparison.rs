//! Comparing two snapshots (FORMAT.md, "Comparing").
//!
//! Driven by unequal ids: an object with the same id on both sides is never read.  The comparison
//! can be continued, so that differences are delivered in batches; it holds only the directories
//! at work and the own directories that exist on one side only.  A path that turned from a
//! directory into another type, or back, is reported as gone and as new.  A moved directory comes
//! before the differences in it, which are stated as if it had always been at its new path.

use std::collections::{BTreeSet, HashSet};
use std::vec::IntoIter;

use huai_git::error::Result;
use huai_git::oid::Oid;

use super::forest::OwnTree;
use super::listing_diff::{ListingPair, Sink};
use super::moves::Moves;
use super::runs::{ComparedSide, PieceRun, Runs};
use crate::path::{RelPath, path_order};
use crate::snapshots::{
    EntryLimit, InlineDirectory, Level, Listing, ManifestBlock, ObjectReader, OwnDirectory,
    Snapshot, Step,
};

/// A comparison of two snapshots in progress.
#[derive(Debug)]
pub struct Comparison<R> {
    old: ComparedSide<R>,
    new: ComparedSide<R>,
    /// The largest number of entries of each side.
    entries: (u64, u64),
    pairs: Vec<(RelPath, Oid, Oid)>,
    open: Option<OpenPair>,
    branches: Option<(Branch, Branch)>,
    listings: Option<ListingPair>,
    gone: Vec<OwnTree>,
    added: Vec<OwnTree>,
    alone: Alone,
    moves: Moves,
}

/// The state of the directories that exist on one side only.
#[derive(Debug)]
enum Alone {
    /// They are still being collected.
    Collected,
    /// The new ones are reported.
    Added,
    /// The removed ones are reported.
    Removed,
    Done,
}

/// A directory with a tree of its own on both sides.
#[derive(Debug)]
struct OpenPair {
    old: OwnDirectory,
    new: OwnDirectory,
    runs: Runs,
    run: Option<(PieceRun, PieceRun)>,
    names: IntoIter<Vec<u8>>,
    /// The names of own directories that are inlined on the other side.
    inline: HashSet<Vec<u8>>,
}

impl<R: ObjectReader> Comparison<R> {
    /// Compare two snapshots, each given with the largest number of entries that it may have.
    pub fn new(old: (Snapshot<R>, u64), new: (Snapshot<R>, u64)) -> Self {
        let side = |(snapshot, limit)| ComparedSide {
            snapshot,
            limit: EntryLimit::new(limit),
        };
        let entries = (old.1, new.1);
        let (old, new) = (side(old), side(new));
        let (one, other) = (old.snapshot.tree, new.snapshot.tree);
        let differ = one != other;
        Self {
            old,
            new,
            entries,
            pairs: differ
                .then_some((RelPath::root(), one, other))
                .into_iter()
                .collect(),
            open: None,
            branches: None,
            listings: None,
            gone: Vec::new(),
            added: Vec::new(),
            alone: Alone::Collected,
            moves: Moves::default(),
        }
    }

    /// Find differences until the sink is full; returns true at the end.  Fails if what is read is
    /// malformed, or above the limit of its side.
    pub fn advance(&mut self, sink: &mut impl Sink) -> Result<bool> {
        while !sink.is_full() {
            if let Some(listings) = &mut self.listings {
                if listings.advance(sink)? {
                    self.listings = None;
                }
            } else if self.branches.is_some() {
                self.next_in_branches()?;
            } else if self.open.is_some() {
                self.next_in_pair()?;
            } else if let Some((path, old, new)) = self.pairs.pop() {
                self.open_pair(path, old, new)?;
            } else if !self.next_alone(sink)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Return the newer snapshot.
    pub fn new_snapshot(&self) -> &Snapshot<R> {
        &self.new.snapshot
    }

    /// Read the trees of a directory on both sides, and find the runs of its unequal pieces.
    fn open_pair(&mut self, path: RelPath, old: Oid, new: Oid) -> Result<()> {
        self.old.limit.spend(1, &path)?;
        self.new.limit.spend(1, &path)?;
        let old = self.old.snapshot.own_directory(path.clone(), old)?;
        let new = self.new.snapshot.own_directory(path, new)?;
        self.old.limit.spend_trees(old.children.len(), &old.path)?;
        self.new.limit.spend_trees(new.children.len(), &new.path)?;
        let runs = Runs::new((&self.old.snapshot, &old), (&self.new.snapshot, &new))?;
        self.open = Some(OpenPair {
            old,
            new,
            runs,
            run: None,
            names: Vec::new().into_iter(),
            inline: HashSet::new(),
        });
        Ok(())
    }

    /// Begin to compare the next inlined subdirectory, or the next run of pieces; at the end, closes the pair.
    fn next_in_pair(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if let (Some(name), Some((before, after))) = (open.names.next(), &mut open.run) {
            let (was, now) = (before.inline.remove(&name), after.inline.remove(&name));
            let inlined = |side: &Option<InlineDirectory>, directory: &OwnDirectory| {
                let blocks = side.iter().flat_map(|each| &each.blocks);
                let paths = blocks.map(|block| Ok(block.listing(&directory.path)?.path));
                paths.collect::<Result<HashSet<_>>>()
            };
            let inlined = (inlined(&was, &open.old)?, inlined(&now, &open.new)?);
            let have = Branch::open(&mut self.old, &open.old, &name, was, inlined.1)?;
            let want = Branch::open(&mut self.new, &open.new, &name, now, inlined.0)?;
            self.branches = Some((have, want));
            return Ok(());
        }
        open.run = open
            .runs
            .next(&mut self.old, &mut self.new, &open.old.path)?;
        let Some((before, after)) = &open.run else {
            self.close_pair();
            return Ok(());
        };
        let names: BTreeSet<&Vec<u8>> = before.inline.keys().chain(after.inline.keys()).collect();
        let own = |name: &&Vec<u8>| open.old.child(name).or(open.new.child(name)).is_some();
        open.inline
            .extend(names.iter().copied().filter(own).cloned());
        open.names = names.into_iter().cloned().collect::<Vec<_>>().into_iter();
        let (old, new) = (before.own.clone(), after.own.clone());
        self.compare(Some(old), Some(new));
        Ok(())
    }

    /// Begin to compare two listings of one directory.
    fn compare(&mut self, old: Option<Listing>, new: Option<Listing>) {
        let moved = old.as_ref().and_then(|old| self.moves.around(&old.path));
        self.listings = Some(ListingPair::new(old, new, moved));
    }

    /// Add the subdirectories with trees of their own that differ to `pairs`, and those on one side only to `gone`
    /// and `added`.  Those inlined on the other side were compared.
    fn close_pair(&mut self) {
        let Some(OpenPair {
            old, new, inline, ..
        }) = self.open.take()
        else {
            return;
        };
        for (name, oid) in &old.children {
            match new.child(name) {
                Some(other) if other == *oid => {}
                Some(other) => self.pairs.push((old.path.join(name), *oid, other)),
                None if inline.contains(name) => {}
                None => self.gone.push(OwnTree::below(&old.path, name, *oid)),
            }
        }
        for (name, oid) in &new.children {
            if old.child(name).is_none() && !inline.contains(name) {
                self.added.push(OwnTree::below(&new.path, name, *oid));
            }
        }
    }

    /// Begin to compare the next directory of two branches, in tree order, or end the branches if none is left.  Own
    /// directories that exist on one side only are put off to `gone` and `added`.
    fn next_in_branches(&mut self) -> Result<()> {
        let Some((have, want)) = &mut self.branches else {
            return Ok(());
        };
        have.fill(&mut self.old, &mut self.gone)?;
        want.fill(&mut self.new, &mut self.added)?;
        let order = match (&have.next, &want.next) {
            (None, None) => {
                self.branches = None;
                return Ok(());
            }
            (Some(old), Some(new)) => path_order(old.path.as_bytes(), new.path.as_bytes()),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
        };
        let old = if order.is_le() {
            have.next.take()
        } else {
            None
        };
        let new = if order.is_ge() {
            want.next.take()
        } else {
            None
        };
        self.compare(old, new);
        Ok(())
    }

    /// Find all moves at first; then report the move of the next directory of one side only, or begin to compare it;
    /// false at the end.
    fn next_alone(&mut self, sink: &mut impl Sink) -> Result<bool> {
        match self.alone {
            Alone::Collected => {
                let removed = (&self.old.snapshot, &*self.gone, self.entries.0);
                let added = (&self.new.snapshot, &*self.added, self.entries.1);
                self.moves = Moves::find(removed, added)?;
                self.alone = Alone::Added;
            }
            Alone::Added => {
                let Some(tree) = self.added.pop() else {
                    self.alone = Alone::Removed;
                    return Ok(true);
                };
                if let Some(source) = self.moves.source(&tree.path) {
                    sink.moved(&source.path, &tree.path);
                    if source.oid != tree.oid {
                        self.pairs.push((tree.path, source.oid, tree.oid));
                    }
                } else {
                    let branch = Branch::alone(&mut self.new, tree)?;
                    self.branches = Some((Branch::default(), branch));
                }
            }
            Alone::Removed => {
                let Some(tree) = self.gone.pop() else {
                    self.alone = Alone::Done;
                    return Ok(false);
                };
                if !self.moves.has_moved(&tree.path) {
                    let branch = Branch::alone(&mut self.old, tree)?;
                    self.branches = Some((branch, Branch::default()));
                }
            }
            Alone::Done => return Ok(false),
        }
        Ok(true)
    }
}

/// A directory of one side with everything below it that is compared; may be empty.
#[derive(Debug, Default)]
struct Branch {
    /// The path of the blocks.
    path: RelPath,
    blocks: IntoIter<ManifestBlock>,
    levels: Vec<Level>,
    /// The directories that are inlined on the other side; other own directories below this one
    /// are not read.
    inlined: HashSet<RelPath>,
    next: Option<Listing>,
}

impl Branch {
    /// Open the subdirectory `name`, which is inlined on at least one side; empty if this side lacks it.
    ///
    /// If it has a tree of its own, own directories below it that are not inlined on the other
    /// side exist on this side only, and may have moved.
    fn open<R: ObjectReader>(
        side: &mut ComparedSide<R>,
        directory: &OwnDirectory,
        name: &[u8],
        inline: Option<InlineDirectory>,
        inlined: HashSet<RelPath>,
    ) -> Result<Self> {
        let mut branch = Self {
            path: directory.path.clone(),
            inlined,
            ..Self::default()
        };
        if let Some(inline) = inline {
            branch.blocks = inline.blocks.into_iter();
        } else if let Some(oid) = directory.child(name) {
            let path = directory.path.join(name);
            branch
                .levels
                .push(Level::open(&side.snapshot, path, oid, &mut side.limit)?);
        }
        Ok(branch)
    }

    /// Open an own directory that exists on one side only.
    fn alone<R: ObjectReader>(side: &mut ComparedSide<R>, tree: OwnTree) -> Result<Self> {
        let level = Level::open(&side.snapshot, tree.path, tree.oid, &mut side.limit)?;
        Ok(Self {
            levels: vec![level],
            ..Self::default()
        })
    }

    /// Make `next`, unless it is set, the next directory, if there is one; own directories that are not inlined on
    /// the other side are added to `alone`.
    fn fill<R: ObjectReader>(
        &mut self,
        side: &mut ComparedSide<R>,
        alone: &mut Vec<OwnTree>,
    ) -> Result<()> {
        if self.next.is_none() {
            let block = self.blocks.next();
            self.next = block.map(|block| block.listing(&self.path)).transpose()?;
        }
        while let (None, Some(level)) = (&self.next, self.levels.last_mut()) {
            match level.next(&side.snapshot, &mut side.limit)? {
                None => {
                    self.levels.pop();
                }
                Some(Step::Listing(listing)) => self.next = Some(listing),
                Some(Step::Own(path, oid)) if self.inlined.contains(&path) => {
                    let below = Level::open(&side.snapshot, path, oid, &mut side.limit)?;
                    self.levels.push(below);
                }
                Some(Step::Own(path, oid)) => alone.push(OwnTree { path, oid }),
            }
        }
        Ok(())
    }
}
