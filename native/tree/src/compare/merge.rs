//! Merges both sides of a comparison, directory by directory, in tree order.

use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};

use huai_format::entries::{Bookmark, Leaves};
use huai_format::path::{RelPath, path_order};
use huai_format::snapshots::{Listing, ObjectReader};
use huai_git::error::{Error as FormatError, Result};
use huai_plan::selection::Selection;
use huai_sys::call;
use huai_sys::error::{Errno, Error};
use huai_sys::folders::Folders;
use huai_sys::handle::Root;
use huai_sys::stop::Stop;

use super::findings::FindingSink;
use super::local::{Local, LocalReader};
use super::place::{ComparisonOptions, Pair, Place, failed};
use super::scope::tree_order;
use crate::walk::ahead::Ahead;
use crate::walk::numbers::NumberOf;

/// A comparison in progress.
#[derive(Debug)]
pub struct TreeComparison<R> {
    selection: Selection<R>,
    listing: Option<Listing>,
    has_listings: bool,
    frames: Ahead<Local>,
    batch: VecDeque<Local>,
    has_frames: bool,
    pair: Option<Pair>,
    place: Place,
}

impl<R: ObjectReader> TreeComparison<R> {
    /// Compare with the directory that this process has open as `handle`.
    pub fn open(
        handle: u32,
        selection: Selection<R>,
        options: ComparisonOptions,
    ) -> std::result::Result<Self, Error> {
        let open = || {
            let root = Root::try_of(call::reopen(handle)?)?;
            let folders = Folders::new(root.reopen()?, None)?;
            Ok((root, folders))
        };
        let (root, folders) = open().map_err(|errno| Error::new("open", b"", errno))?;
        Ok(Self {
            selection,
            listing: None,
            has_listings: true,
            frames: Ahead::new(&options.scope.top),
            batch: VecDeque::new(),
            has_frames: true,
            pair: None,
            place: Place::new(root, options, folders),
        })
    }

    /// Compare until the batch is full; returns true at the end.  Fails with `CANCELED` after a
    /// stop.
    pub fn advance(
        &mut self,
        number_of: &NumberOf<'_>,
        stop: &Stop,
        to: &mut impl FindingSink,
    ) -> Result<bool> {
        let mut ended = false;
        while !to.is_full() && !ended {
            if stop.is_set() {
                return Err(failed(b"", Errno::CANCELED));
            }
            if let Some(mut pair) = self.pair.take() {
                if !self.compare(&mut pair, number_of, to)? {
                    self.pair = Some(pair);
                }
            } else if let Some(pair) = self.next_pair(stop)? {
                self.place.begin(&pair, number_of, to)?;
                self.pair = Some(pair);
            } else {
                self.place.extraneous.report_before(None, to.records());
                ended = true;
            }
        }
        to.records().finish();
        Ok(ended)
    }

    /// Return the key in tree order of the last wanted entry that was compared, found or missing; empty before the
    /// first.
    pub fn position(&self) -> Vec<u8> {
        let last = self.place.last.as_ref();
        last.map_or_else(Vec::new, |(directory, name, is_directory)| {
            if *is_directory {
                tree_order(directory.as_bytes(), true)
            } else {
                tree_order(directory.join(name).as_bytes(), false)
            }
        })
    }

    /// Return the extraneous leaves that are not reported yet.
    pub fn waiting(&self) -> Vec<Vec<u8>> {
        self.place.extraneous.waiting()
    }

    /// Drop extraneous leaves, so that they are not reported.
    pub fn forget(&mut self, paths: HashSet<Vec<u8>>) {
        for path in paths {
            self.place.extraneous.mark_reported(&path);
        }
    }

    /// Return the next directory of either side in tree order, `None` at the end; reads ahead in the local tree.
    /// Fails after a stop.
    fn next_pair(&mut self, stop: &Stop) -> Result<Option<Pair>> {
        if self.listing.is_none() && self.has_listings {
            self.listing = self.selection.next_directory()?;
            self.has_listings = self.listing.is_some();
        }
        if self.batch.is_empty() && self.has_frames {
            let Place { root, options, .. } = &self.place;
            let reader = || LocalReader::new(root, &options.scope, options.opens_up, stop);
            let batch = self.frames.next(options.threads, reader);
            self.batch = batch
                .map_err(|error| FormatError::Lent(Box::new(error)))?
                .into();
            self.has_frames = !self.batch.is_empty();
        }
        let order = match (&self.listing, self.batch.front()) {
            (None, None) => return Ok(None),
            (Some(listing), Some(local)) => path_order(listing.path.as_bytes(), &local.path),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        let selected = if order.is_le() {
            self.listing.take()
        } else {
            None
        };
        let local = if order.is_ge() {
            self.batch.pop_front()
        } else {
            None
        };
        let path = match (&selected, &local) {
            (Some(listing), _) => listing.path.clone(),
            (None, local) => RelPath::trusted(
                local
                    .as_ref()
                    .map_or_else(Vec::new, |each| each.path.clone()),
            ),
        };
        let begun = selected.map(|listing| {
            let start = Bookmark::start(&listing.leaves, &listing.digests);
            (listing, start)
        });
        Ok(Some(Pair {
            path,
            wanted: begun,
            local,
            next: 0,
            child: 0,
        }))
    }

    /// Compare the leaves of a directory until the batch is full; returns true at their end, else keeps the progress
    /// in `pair`.
    fn compare(
        &mut self,
        pair: &mut Pair,
        number_of: &NumberOf<'_>,
        to: &mut impl FindingSink,
    ) -> Result<bool> {
        let Self {
            selection, place, ..
        } = self;
        let mut unfinished = pair.wanted.take();
        if let Some((listing, bookmark)) = &mut unfinished {
            let (text, digests) = (&listing.leaves, &listing.digests);
            let mut leaves = Leaves::resume(&listing.path, text, digests, bookmark);
            while let Some(entry) = leaves.next() {
                let entry = entry?;
                to.records().step();
                if place.wants(&listing.path, &entry) {
                    if let Some(entry) = selection.admit(&listing.path, entry) {
                        place.compare_leaf(pair, &entry, number_of, to)?;
                    }
                }
                if to.is_full() {
                    let reached = leaves.bookmark();
                    *bookmark = reached;
                    pair.wanted = unfinished;
                    return Ok(false);
                }
            }
        }
        while let Some(leaf) = pair.local.as_ref().and_then(|local| local.leaf(pair.next)) {
            place.add_local_leaf(&pair.path, leaf, to.records());
            pair.next += 1;
        }
        Ok(true)
    }
}
