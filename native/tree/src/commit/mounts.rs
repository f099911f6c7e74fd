//! Mount points: a mounted or unmounted file system must not be taken for deleted files.
//!
//! If a directory had entries in the last commit and has none now, because another file
//! system is mounted over it or its own is not mounted, it is passed on as unreadable, so that its
//! old entries stay.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use huai_format::entries::raw_leaves;
use huai_format::escape::unescape;
use huai_format::path::{RelPath, basename, is_within, parent};
use huai_format::snapshots::{Lookup, ObjectReader};
use huai_git::error::Result;
use huai_sys::call;
use huai_sys::handle::Root;

use crate::scan::directory::{Directory, Frame, Reason};

/// The mount points of one scan.
#[derive(Debug)]
pub struct Mounts {
    /// The mount points of the last commit.
    before: BTreeSet<Vec<u8>>,
    /// True if the scan enters mount points.
    enter: bool,
    /// True if the present state of every directory is accepted.
    accept: bool,
    /// The mount points of this commit.
    pub now: BTreeSet<Vec<u8>>,
    /// The current directories at which the device changes, with their devices.
    above: Vec<(Vec<u8>, u64)>,
    /// The last directory that was passed on as unreadable; everything below it is dropped.
    kept: Option<Vec<u8>>,
}

impl Mounts {
    /// Compare with `before`, the mount points of the last commit.  With `enter`, the scan enters
    /// mount points; with `accept`, the present state of every directory is accepted.
    pub fn new(before: BTreeSet<Vec<u8>>, enter: bool, accept: bool) -> Self {
        Self {
            before,
            enter,
            accept,
            now: BTreeSet::new(),
            above: Vec::new(),
            kept: None,
        }
    }

    /// Begin below the root: `parent`, the directory above the first one, is on `device`.
    pub(super) fn begin_in(&mut self, parent: &[u8], device: u64) {
        self.above.push((parent.to_vec(), device));
    }

    /// Record mount points, and return the frame.  A directory whose old entries stay is returned as unreadable; for
    /// everything below an unreadable directory, returns `None`.  Frames come in tree order.
    pub(super) fn guard<R: ObjectReader>(
        &mut self,
        frame: Frame,
        root: &Root,
        past: Option<&mut Lookup<R>>,
    ) -> Result<Option<Frame>> {
        if self
            .kept
            .as_ref()
            .is_some_and(|top| is_within(frame.path(), top))
        {
            return Ok(None);
        }
        self.kept = None;
        let frame = match frame {
            Frame::Read(directory) if directory.is_continuation() => {
                return Ok(Some(Frame::Read(directory)));
            }
            Frame::Read(directory) => self.judge(directory, root, past)?,
            other => other,
        };
        if let Frame::Unreadable { path, .. } = &frame {
            let within = self.before.iter().filter(|each| is_within(each, path));
            self.now.extend(within.cloned());
            self.kept = Some(path.clone());
        }
        Ok(Some(frame))
    }

    /// Return a directory as read, and record a mount point; or as unreadable if its old entries stay.
    fn judge<R: ObjectReader>(
        &mut self,
        directory: Directory,
        root: &Root,
        past: Option<&mut Lookup<R>>,
    ) -> Result<Frame> {
        let mounted = self.is_mount(&directory);
        if !mounted && !self.before.contains(&directory.path) {
            return Ok(Frame::Read(directory));
        }
        if let Some(reason) = self.reason(&directory.path, mounted, root, past)? {
            let path = directory.path;
            return Ok(Frame::Unreadable { path, reason });
        }
        if mounted && self.enter {
            self.now.insert(directory.path.clone());
        }
        Ok(Frame::Read(directory))
    }

    /// Return the reason to keep the old entries of a directory that is (`mounted`) or was a mount point; `None` if
    /// its present state is accepted: by option, because it had no entries, or because it is entered and one of them
    /// is still there.
    fn reason<R: ObjectReader>(
        &self,
        path: &[u8],
        mounted: bool,
        root: &Root,
        past: Option<&mut Lookup<R>>,
    ) -> Result<Option<Reason>> {
        let is_entered = !mounted || self.enter;
        if self.accept || (is_entered && mounted == self.before.contains(path)) {
            return Ok(None);
        }
        let mut is_empty = true;
        let Some(past) = past else { return Ok(None) };
        let mut subtree = past.subtree(&RelPath::trusted(path.to_vec()))?;
        while let Some(listing) = subtree.next_of(&past.snapshot(), |_| true)? {
            let mut names = Vec::new();
            if listing.path.as_bytes() == path {
                for leaf in raw_leaves(&listing.leaves, b"") {
                    names.push(unescape(leaf.name)?.into_owned());
                }
            } else if parent(listing.path.as_bytes()) == path {
                names.push(basename(listing.path.as_bytes()).to_vec());
            }
            if !is_entered && !names.is_empty() {
                return Ok(Some(Reason::NotEntered));
            }
            is_empty &= names.is_empty();
            if names.iter().any(|name| is_there(root, path, name)) {
                return Ok(None);
            }
        }
        Ok((!is_empty).then_some(if mounted {
            Reason::MountedOver
        } else {
            Reason::NotMounted
        }))
    }

    /// Return true if the directory, the next in tree order, is on another device than its parent.
    fn is_mount(&mut self, directory: &Directory) -> bool {
        let is_left = |(top, _): &(Vec<u8>, u64)| !is_within(&directory.path, top);
        while self.above.last().is_some_and(is_left) {
            self.above.pop();
        }
        let above = self.above.last().map(|(_, device)| *device);
        if above != Some(directory.device) {
            let entry = (directory.path.clone(), directory.device);
            self.above.push(entry);
        }
        above.is_some_and(|above| above != directory.device)
    }
}

/// Return true if the name exists and can be examined.
fn is_there(root: &Root, directory: &[u8], name: &[u8]) -> bool {
    let status = root
        .enter(directory)
        .and_then(|folder| call::status_at(folder.as_fd(), name));
    status.is_ok()
}
