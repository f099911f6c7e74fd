//! The new tree of an amended snapshot, and the counts of what changed.

use std::collections::{BTreeSet, HashMap};

use huai_git::error::{Error, Result};
use huai_git::oid::Oid;

use crate::amend::amendment::{Amended, Amendment};
use crate::amend::leaves::{LeafReader, names};
use crate::amend::merged::Merged;
use crate::amend::past::SnapshotReader;
use crate::amend::sparse::{Sparse, Step};
use crate::path::{RelPath, basename, is_within, parent};
use crate::snapshots;
use crate::snapshots::{EntryLimit, Located, ObjectReader, ObjectWriter, Walk};
use crate::write::{Counts, Layout, ListingText, Totals};

/// A builder that takes the directories of the snapshot and the amendments in tree order.
pub(super) struct NewTree<'a> {
    amendments: &'a [Amendment],
    /// The number of the next amendment.
    pub(super) next: usize,
    by_path: HashMap<&'a [u8], usize>,
    layout: Layout,
    /// The names of leaves by amendment, for amendments in which a directory may have ended.
    leaves: HashMap<usize, BTreeSet<Vec<u8>>>,
    /// The last directory that ended.
    ended: Option<RelPath>,
    /// A directory that may get more leaves, and its new leaves so far.
    open: Option<(&'a Amendment, LeafReader<'a>)>,
    pub(super) result: Amended,
}

impl<'a> NewTree<'a> {
    /// Begin without a directory; the tree `past` is the result if there are no amendments.
    pub(super) fn new(past: Oid, amendments: &'a [Amendment]) -> Self {
        let numbered = amendments.iter().enumerate();
        Self {
            amendments,
            next: 0,
            by_path: numbered
                .map(|(number, each)| (&*each.path, number))
                .collect(),
            layout: Layout::default(),
            leaves: HashMap::new(),
            ended: None,
            open: None,
            result: Amended {
                tree: past,
                added: Totals::default(),
                added_directories: 0,
                removed: Totals::default(),
                removed_directories: 0,
                counts: Counts::default(),
                unknown: BTreeSet::new(),
                ended: BTreeSet::new(),
            },
        }
    }

    /// Take over the next part of the snapshot, which has no amendment: by its id, if it has a tree of its own and no
    /// amendment is below.  A directory that ended is left out and counted.
    pub(super) fn take_over<R: ObjectReader>(
        &mut self,
        past: &mut SnapshotReader<'_, R>,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        match past.next.take() {
            Some(Step::Piece(_, located)) => return self.keep(past, &located, writer),
            Some(Step::Leaves(listing)) => return self.continue_leaves(past, &listing, writer),
            other => past.next = other,
        }
        let Some(path) = past.peek()?.cloned() else {
            return Ok(());
        };
        if self.has_ended(&path) {
            return self.remove(past);
        }
        let below = self.amendments.get(self.next);
        let inside = below.is_some_and(|each| is_within(&each.path, path.as_bytes()));
        if let (Some(Step::Own(_, tree)), false) = (&past.next, inside) {
            self.layout.graft(path.as_bytes(), *tree, writer)?;
            past.next = None;
            return Ok(());
        }
        if let Some(listing) = past.listing(None)? {
            self.layout.add(&borrowed(&listing), writer)?;
        }
        Ok(())
    }

    /// Keep a piece of the current directory, which does not change.
    fn keep<R: ObjectReader>(
        &mut self,
        past: &SnapshotReader<'_, R>,
        located: &Located,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let (Some(sparse), Some(key)) = (past.sparse(), located.name) else {
            return Err(Error::new("a piece without a directory"));
        };
        let path = sparse.path().as_bytes();
        self.layout.keep(path, key, located.piece, writer)
    }

    /// Merge more leaves of the current directory with its amendment, and count both; names in `gone` that they have
    /// are no longer unknown.
    fn continue_leaves<R: ObjectReader>(
        &mut self,
        past: &SnapshotReader<'_, R>,
        listing: &snapshots::Listing,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let Some((amendment, leaves)) = &mut self.open else {
            return Err(Error::new("leaves without a directory"));
        };
        let until = past.sparse().and_then(Sparse::until);
        let merged = Merged::of(listing, leaves, until, amendment)?;
        for name in &merged.found {
            self.result
                .unknown
                .remove(listing.path.join(name).as_bytes());
        }
        self.count_removed(&listing.leaves, 0);
        self.result.added.add(Totals::of(&merged.lines));
        self.result.counts.join(merged.counts);
        if merged.lines.is_empty() {
            return Ok(());
        }
        let more = ListingText {
            path: listing.path.as_bytes(),
            attributes: b"",
            leaves: &merged.lines,
            digests: &merged.digests,
        };
        self.layout.add(&more, writer)
    }

    /// Leave out the next directory of the snapshot, which ended, and count what was in it.
    fn remove<R: ObjectReader>(&mut self, past: &mut SnapshotReader<'_, R>) -> Result<()> {
        match past.next.take() {
            Some(Step::Own(path, tree)) => {
                let limit = EntryLimit::new(past.entries);
                let mut walk = Walk::below(path, tree, limit);
                while let Some(listing) = walk.next(past.snapshot)? {
                    self.count_removed(&listing.leaves, 1);
                }
            }
            Some(Step::Listing(listing)) => self.count_removed(&listing.leaves, 1),
            _ => {}
        }
        Ok(())
    }

    /// Apply the next amendment to the next directory of the snapshot; counts the leaves, and notes names in `gone`
    /// that it lacks.  Further pieces of it follow by `take_over`.
    pub(super) fn change<R: ObjectReader>(
        &mut self,
        past: &mut SnapshotReader<'_, R>,
        amendment: &'a Amendment,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let Some(listing) = past.listing(Some(amendment))? else {
            return Ok(());
        };
        let mut leaves = LeafReader::new(&amendment.leaves, &amendment.digests)?;
        let sparse = past
            .sparse()
            .filter(|sparse| *sparse.path() == listing.path);
        let until = sparse.and_then(Sparse::until);
        let merged = Merged::of(&listing, &mut leaves, until, amendment)?;
        for name in &amendment.gone {
            if !merged.found.contains(name) {
                let path = RelPath::trusted(amendment.path.clone()).join(name);
                self.result.unknown.insert(path.as_bytes().to_vec());
            }
        }
        self.count_removed(&listing.leaves, 0);
        if *listing.attributes != *amendment.attributes {
            self.result.counts.add(true, true);
        }
        self.write_listing(amendment, &merged, writer)?;
        if sparse.is_some() {
            self.open = Some((amendment, leaves));
            self.layout.cut(writer)?;
        }
        Ok(())
    }

    /// Add the directory of the next amendment, which the snapshot does not have; its names in `gone` are unknown.
    pub(super) fn make(
        &mut self,
        amendment: &'a Amendment,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let nothing = snapshots::Listing {
            path: RelPath::trusted(amendment.path.clone()),
            attributes: Vec::new().into(),
            leaves: Vec::new().into(),
            digests: Vec::new().into(),
        };
        let mut leaves = LeafReader::new(&amendment.leaves, &amendment.digests)?;
        let merged = Merged::of(&nothing, &mut leaves, None, amendment)?;
        for name in &amendment.gone {
            let path = nothing.path.join(name);
            self.result.unknown.insert(path.as_bytes().to_vec());
        }
        self.result.added_directories = self.result.added_directories.saturating_add(1);
        self.result.counts.add(false, true);
        self.write_listing(amendment, &merged, writer)
    }

    /// Write the directory of the next amendment, count its leaves, and go on to the amendment after it.
    fn write_listing(
        &mut self,
        amendment: &'a Amendment,
        merged: &Merged,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let listing = ListingText {
            path: &amendment.path,
            attributes: &amendment.attributes,
            leaves: &merged.lines,
            digests: &merged.digests,
        };
        self.result.added.add(Totals::of(&merged.lines));
        self.result.counts.join(merged.counts);
        self.leaves.insert(self.next, names(&amendment.leaves)?);
        self.next = self.next.saturating_add(1);
        self.layout.add(&listing, writer)
    }

    /// True if the directory at `path` of the snapshot ended, by itself, which is then added to the result, or with
    /// one above.
    fn has_ended(&mut self, path: &RelPath) -> bool {
        if let Some(top) = &self.ended {
            if is_within(path.as_bytes(), top.as_bytes()) {
                return true;
            }
        }
        let above = self.by_path.get(parent(path.as_bytes())).copied();
        let Some((number, amendment)) =
            above.and_then(|number| Some((number, self.amendments.get(number)?)))
        else {
            return false;
        };
        let leaves = self.leaves.get(&number);
        let ended = !path.is_root()
            && leaves.is_some_and(|leaves| amendment.ends(basename(path.as_bytes()), leaves));
        if ended {
            self.result.unknown.remove(path.as_bytes());
            self.result.ended.insert(path.as_bytes().to_vec());
            self.ended = Some(path.clone());
        }
        ended
    }

    fn count_removed(&mut self, leaves: &[u8], directories: u64) {
        self.result.removed.add(Totals::of(leaves));
        self.result.removed_directories =
            self.result.removed_directories.saturating_add(directories);
    }

    /// Write what is still open; returns the new tree with all counts.
    pub(super) fn finish(self, writer: &mut impl ObjectWriter) -> Result<Amended> {
        let tree = self.layout.finish(writer)?;
        Ok(Amended {
            tree,
            ..self.result
        })
    }
}

fn borrowed(listing: &snapshots::Listing) -> ListingText<'_> {
    ListingText {
        path: listing.path.as_bytes(),
        attributes: &listing.attributes,
        leaves: &listing.leaves,
        digests: &listing.digests,
    }
}
