//! Decides which entries match, are missing or are extraneous, with the state for this that is kept
//! between directories.

use std::collections::HashSet;

use huai_format::entries::{Body, Bookmark, Entry, decode_directory};
use huai_format::path::RelPath;
use huai_format::snapshots::Listing;
use huai_git::error::{Error as FormatError, Result};
use huai_plan::selection::Modes;
use huai_sys::error::{Errno, Error, is_shortage};
use huai_sys::folders::Folders;
use huai_sys::handle::Root;

use super::extraneous::Extraneous;
use super::findings::{FindingRecords, FindingSink};
use super::local::{Closed, Leaf, Local, LocalEntry, look};
use super::scope::{Scope, tree_order};
use crate::walk::numbers::{NumberOf, Numbers};

/// The options of a comparison.
#[derive(Debug)]
pub struct ComparisonOptions {
    /// The scope; it contains the whole selection.
    pub scope: Scope,
    /// The modes that are right.
    pub modes: Modes,
    /// True to compare owners and groups.
    pub owners: bool,
    /// True to report each file whose content is to be read, even without a difference.
    pub content: bool,
    /// True to end a batch at a closed directory, so that the caller can open it.
    pub opens_up: bool,
    /// The number of threads that read directories.
    pub threads: usize,
}

/// A directory of one side or both, and the progress in its leaves.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) path: RelPath,
    pub(super) wanted: Option<(Listing, Bookmark)>,
    pub(super) local: Option<Local>,
    pub(super) next: usize,
    /// The position in the names of the local subdirectories.
    pub(super) child: usize,
}

/// The state of a comparison between directories.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) root: Root,
    pub(super) options: ComparisonOptions,
    pub(super) numbers: Numbers,
    pub(super) extraneous: Extraneous,
    /// The directories in the place of a wanted leaf, which were reported already.
    pub(super) retyped: HashSet<Vec<u8>>,
    /// The key of the unreadable directory at or above the current one.
    pub(super) blind: Option<Vec<u8>>,
    /// The inodes with several names that are leaders of groups.
    pub(super) inodes: HashSet<(u64, u64)>,
    pub(super) folders: Folders,
    pub(super) last: Option<(RelPath, Vec<u8>, bool)>,
}

impl Place {
    /// Begin a comparison.
    pub(super) fn new(root: Root, options: ComparisonOptions, folders: Folders) -> Self {
        Self {
            root,
            options,
            numbers: Numbers::default(),
            extraneous: Extraneous::default(),
            retyped: HashSet::new(),
            blind: None,
            inodes: HashSet::new(),
            folders,
            last: None,
        }
    }

    /// Compare the directory itself, and report it if it is extraneous or unreadable, after the extraneous leaves of
    /// those that ended before it.  Nothing below an unreadable directory is judged.
    pub(super) fn begin(
        &mut self,
        pair: &Pair,
        number_of: &NumberOf<'_>,
        to: &mut impl FindingSink,
    ) -> Result<()> {
        let path = pair.path.as_bytes();
        let key = tree_order(path, true);
        to.records().step();
        self.extraneous.report_before(Some(&key), to.records());
        self.blind = self.blind.take().filter(|blind| key.starts_with(blind));
        let (own, closed) = pair
            .local
            .as_ref()
            .map_or((None, None), |local| (local.own, local.closed));
        let is_hidden = own.is_none() && closed.is_some();
        let scope = &self.options.scope;
        let wanted_listing = pair.wanted.as_ref().filter(|_| {
            scope.covers(path) && scope.holds(path, true) && !is_hidden && self.blind.is_none()
        });
        if let Some((listing, _)) = wanted_listing {
            let entry = decode_directory(&pair.path, &listing.attributes)?;
            match own {
                Some(seen) => {
                    self.compare_entry((&pair.path, &entry), &seen, b"", number_of, to)?;
                }
                None => self.compare_lone_directory(&pair.path, &entry, number_of, to)?,
            }
        } else if own.is_some() && !self.retyped.remove(path) {
            to.records().add_extraneous(path, true);
        }
        if let Some(why) = closed {
            to.records().add_unreadable(path, why, true);
            self.blind = Some(key);
            if self.options.opens_up {
                to.records().fill();
            }
        }
        Ok(())
    }

    /// Return true if a leaf of the snapshot is in the scope and is not below an unreadable directory.
    pub(super) fn wants(&self, directory: &RelPath, entry: &Entry<'_>) -> bool {
        let scope = &self.options.scope;
        if self.blind.is_some() || (scope.top.is_empty() && scope.after.is_empty()) {
            return self.blind.is_none();
        }
        let path = directory.join(&entry.name);
        scope.covers(path.as_bytes()) && scope.holds(path.as_bytes(), false)
    }

    /// Compare a leaf of the snapshot with the local one; leaves come in name order.  Local leaves with names before
    /// it are extraneous, which `begin` reports later, or unreadable.
    pub(super) fn compare_leaf(
        &mut self,
        pair: &mut Pair,
        entry: &Entry<'_>,
        number_of: &NumberOf<'_>,
        to: &mut impl FindingSink,
    ) -> Result<()> {
        let name = &*entry.name;
        let mut same_name = None;
        if let Some(local) = &pair.local {
            while let Some(leaf) = local.leaf(pair.next).filter(|leaf| leaf.name <= name) {
                pair.next += 1;
                if leaf.name == name {
                    same_name = Some(leaf);
                    break;
                }
                self.add_local_leaf(&pair.path, leaf, to.records());
            }
        }
        let entry_here = (&pair.path, entry);
        match same_name {
            Some(Leaf {
                seen: Ok(seen),
                target,
                ..
            }) => self.compare_entry(entry_here, &seen, target, number_of, to),
            Some(leaf) => {
                self.add_local_leaf(&pair.path, leaf, to.records());
                Ok(())
            }
            None => {
                let is_top = || pair.path.join(name).as_bytes() == self.options.scope.top;
                let may_be_directory = match &pair.local {
                    Some(local) => has_child(&local.children, &mut pair.child, name),
                    None => false,
                };
                if may_be_directory || is_top() {
                    self.compare_lone_leaf(entry_here, number_of, to)
                } else {
                    self.report_missing(entry_here, to)
                }
            }
        }
    }

    /// Compare a wanted leaf that has no local leaf; a directory may be in its place.  A path that cannot be read is
    /// recorded; only a shortage is an error.
    fn compare_lone_leaf(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        number_of: &NumberOf<'_>,
        to: &mut impl FindingSink,
    ) -> Result<()> {
        let path = wanted.0.join(&wanted.1.name);
        match look(&mut self.folders, path.as_bytes()) {
            Ok(Some(LocalEntry { seen, target })) => {
                self.retyped.insert(path.as_bytes().to_vec());
                self.compare_entry(wanted, &seen, &target, number_of, to)
            }
            Ok(None) => self.report_missing(wanted, to),
            Err(errno) if is_shortage(errno) => Err(failed(path.as_bytes(), errno)),
            Err(errno) => {
                to.records()
                    .add_unreadable(path.as_bytes(), Closed::Errno(errno), false);
                Ok(())
            }
        }
    }

    /// Compare a wanted directory that has no local directory; a leaf may be in its place.
    /// A path that cannot be read is recorded; only a shortage is an error.
    fn compare_lone_directory(
        &mut self,
        path: &RelPath,
        entry: &Entry<'_>,
        number_of: &NumberOf<'_>,
        to: &mut impl FindingSink,
    ) -> Result<()> {
        // The leaves before the start of the scope are not remembered.
        let from_start = self.options.scope.after.is_empty();
        if from_start && !self.extraneous.holds(path.as_bytes()) {
            return self.report_missing((path, entry), to);
        }
        match look(&mut self.folders, path.as_bytes()) {
            Ok(Some(LocalEntry { seen, target })) => {
                self.extraneous.mark_reported(path.as_bytes());
                self.compare_entry((path, entry), &seen, &target, number_of, to)
            }
            Ok(None) => self.report_missing((path, entry), to),
            Err(errno) if is_shortage(errno) => Err(failed(path.as_bytes(), errno)),
            Err(errno) => {
                to.records()
                    .add_unreadable(path.as_bytes(), Closed::Errno(errno), true);
                Ok(())
            }
        }
    }

    /// Add a local leaf that is not wanted so far to `extraneous`, or report that it is unreadable.
    pub(super) fn add_local_leaf(
        &mut self,
        directory: &RelPath,
        leaf: Leaf<'_>,
        to: &mut FindingRecords,
    ) {
        match leaf.seen {
            Ok(_) => self.extraneous.add(directory.as_bytes(), leaf.name),
            Err(errno) => {
                let path = directory.join(leaf.name);
                to.add_unreadable(path.as_bytes(), Closed::Errno(errno), false);
            }
        }
    }

    /// Count and report a wanted entry that is missing.
    fn report_missing(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        to: &mut impl FindingSink,
    ) -> Result<()> {
        self.count(wanted, to.records());
        let added = to.add_missing(wanted);
        added.map_err(|errno| failed(wanted.0.as_bytes(), errno))
    }

    /// Count an entry of the selection, and note that it is the last one compared.
    pub(super) fn count(
        &mut self,
        (directory, entry): (&RelPath, &Entry<'_>),
        to: &mut FindingRecords,
    ) {
        to.count(entry);
        let is_directory = matches!(entry.body, Body::Directory);
        match &mut self.last {
            Some((above, name, directories)) if *above == *directory => {
                name.clear();
                name.extend_from_slice(&entry.name);
                *directories = is_directory;
            }
            last => *last = Some((directory.clone(), entry.name.to_vec(), is_directory)),
        }
    }
}

/// Return true if `name` is among `children`, sorted and each ended by NUL.  `from` is the position
/// to continue for a later name.
fn has_child(children: &[u8], from: &mut usize, name: &[u8]) -> bool {
    while let Some(rest) = children.get(*from..).filter(|rest| !rest.is_empty()) {
        let child = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        if child >= name {
            return child == name;
        }
        *from += child.len() + 1;
    }
    false
}

/// Convert an error of the kernel about `path`.
pub(super) fn failed(path: &[u8], errno: Errno) -> FormatError {
    FormatError::Lent(Box::new(Error::new("compare", path, errno)))
}
