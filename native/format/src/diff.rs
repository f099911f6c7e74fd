//! Comparing two snapshots (FORMAT.md, "Comparing").
//!
//! Driven by unequal ids: what has one id on both sides is never read.  Goes on from where it was,
//! so that what is found can be handed over in batches; no more is held than what is being looked
//! at, and the own directories that stand on one side only.  A path that turned from a directory
//! into something else, or back, comes twice: as gone and as new.  A directory that moved comes
//! before what differs in it, which is stated as if the directory had always been where it is now.

use std::collections::{BTreeSet, HashSet};
use std::vec::IntoIter;

use crate::entry_limit::EntryLimit;
use crate::error::Result;
use crate::forest::Tree;
use crate::git::oid::Oid;
use crate::level::{Level, Step};
use crate::listing_diff::{ListingPair, Sink};
use crate::manifest::{Block, InlineDirectory, Listing};
use crate::moves::Moves;
use crate::objects::ObjectReader;
use crate::own_directory::OwnDirectory;
use crate::path::{RelPath, path_order};
use crate::runs::{PieceRun, Runs, Side};
use crate::snapshot::Snapshot;

/// Two snapshots and what is still to be looked at.
#[derive(Debug)]
pub struct Comparison<R> {
    old: Side<R>,
    new: Side<R>,
    /// How many entries each side may have.
    entries: (u64, u64),
    pairs: Vec<(RelPath, Oid, Oid)>,
    open: Option<OpenPair>,
    branches: Option<(Branch, Branch)>,
    listings: Option<ListingPair>,
    gone: Vec<Tree>,
    added: Vec<Tree>,
    alone: Alone,
    moves: Moves,
}

/// What is done with the directories that stand on one side only, one after the other.
#[derive(Debug)]
enum Alone {
    /// Nothing yet: they are still being found.
    Found,
    Arrived,
    Left,
    Done,
}

/// A directory that has its own tree on both sides.
#[derive(Debug)]
struct OpenPair {
    old: OwnDirectory,
    new: OwnDirectory,
    runs: Runs,
    run: Option<(PieceRun, PieceRun)>,
    names: IntoIter<Vec<u8>>,
    /// Names of own directories that stand in the other side's manifest.
    inline: HashSet<Vec<u8>>,
}

impl<R: ObjectReader> Comparison<R> {
    /// Of two snapshots, each with the number of entries that it may have.
    pub fn new(old: (Snapshot<R>, u64), new: (Snapshot<R>, u64)) -> Self {
        let side = |(snapshot, limit)| Side {
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
            alone: Alone::Found,
            moves: Moves::default(),
        }
    }

    /// Find differences until the sink is full; whether there are no more.
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

    /// The new one of the two.
    pub fn new_snapshot(&self) -> &Snapshot<R> {
        &self.new.snapshot
    }

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

    /// The next subdirectory that stands in a manifest, or the next run of pieces.
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

    fn compare(&mut self, old: Option<Listing>, new: Option<Listing>) {
        let moved = old.as_ref().and_then(|old| self.moves.around(&old.path));
        self.listings = Some(ListingPair::new(old, new, moved));
    }

    /// Note the subdirectories that have trees of their own.
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
                None => self.gone.push(Tree::below(&old.path, name, *oid)),
            }
        }
        for (name, oid) in &new.children {
            if old.child(name).is_none() && !inline.contains(name) {
                self.added.push(Tree::below(&new.path, name, *oid));
            }
        }
    }

    /// The next directory, of two branches in tree order.
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

    /// The next directory that stands on one side only; false if there is none.
    fn next_alone(&mut self, sink: &mut impl Sink) -> Result<bool> {
        match self.alone {
            Alone::Found => {
                let gone = (&self.old.snapshot, &*self.gone, self.entries.0);
                let added = (&self.new.snapshot, &*self.added, self.entries.1);
                self.moves = Moves::find(gone, added)?;
                self.alone = Alone::Arrived;
            }
            Alone::Arrived => {
                let Some(tree) = self.added.pop() else {
                    self.alone = Alone::Left;
                    return Ok(true);
                };
                if let Some(source) = self.moves.source(&tree.path) {
                    sink.moved(&source.path, &tree.path);
                    if source.oid != tree.oid {
                        self.pairs.push((tree.path, source.oid, tree.oid));
                    }
                } else {
                    let branch = Branch::level(&mut self.new, tree)?;
                    self.branches = Some((Branch::default(), branch));
                }
            }
            Alone::Left => {
                let Some(tree) = self.gone.pop() else {
                    self.alone = Alone::Done;
                    return Ok(false);
                };
                if !self.moves.has_taken(&tree.path) {
                    let branch = Branch::level(&mut self.old, tree)?;
                    self.branches = Some((branch, Branch::default()));
                }
            }
            Alone::Done => return Ok(false),
        }
        Ok(true)
    }
}

/// A directory of one side with what is below it, as far as it is to be compared; or nothing.
#[derive(Debug, Default)]
struct Branch {
    /// Where the blocks are.
    path: RelPath,
    blocks: IntoIter<Block>,
    levels: Vec<Level>,
    /// Directories that stand in the other side's manifest; no other own directory below this
    /// one is looked into.
    inlined: HashSet<RelPath>,
    next: Option<Listing>,
}

impl Branch {
    /// The subdirectory `name`, which stands in a manifest on at least one side.
    ///
    /// Where it has a tree of its own, the directories below that have one too and are not in
    /// the other side's manifest stand on this side alone, and may have moved.
    fn open<R: ObjectReader>(
        side: &mut Side<R>,
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

    /// An own directory that stands on one side only.
    fn level<R: ObjectReader>(side: &mut Side<R>, tree: Tree) -> Result<Self> {
        let level = Level::open(&side.snapshot, tree.path, tree.oid, &mut side.limit)?;
        Ok(Self {
            levels: vec![level],
            ..Self::default()
        })
    }

    /// See to it that `next` is the next directory, if there is one.
    fn fill<R: ObjectReader>(&mut self, side: &mut Side<R>, alone: &mut Vec<Tree>) -> Result<()> {
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
                Some(Step::Own(path, oid)) => alone.push(Tree { path, oid }),
            }
        }
        Ok(())
    }
}
