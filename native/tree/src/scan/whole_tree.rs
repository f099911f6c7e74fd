//! Scans a whole tree, directory by directory, in tree order.

use std::collections::{BTreeSet, VecDeque};

use huai_export::change_list::Touched;
use huai_format::path::{RelPath, basename, parent};
use huai_sys::call::Outcome;
use huai_sys::error::{Error, Result};
use huai_sys::handle::Root;
use huai_sys::progress;
use huai_sys::stop::Stop;

use super::directory::{Frame, ReadDirectory, Reader, ScanOptions, Tree};
use super::touched::{self, LookResult};
use crate::scan::directory::file_systems::FileSystems;
use crate::walk::ahead::{Ahead, Read};
use crate::walk::owners::{LookUp, Owners};
use crate::walk::queue::{BATCH, Reading};

/// A scan in progress.
#[derive(Debug)]
pub struct Scan {
    pub(crate) root: Root,
    options: ScanOptions,
    owners: Owners,
    file_systems: FileSystems,
    found: Ahead<ReadDirectory>,
    /// The first results for the caller.
    first: VecDeque<ReadDirectory>,
    /// The directories that other scans read.
    shards: BTreeSet<Vec<u8>>,
}

impl Scan {
    /// Begin at the directory `root`, which may be a symlink.
    pub fn open(root: &[u8], options: ScanOptions) -> Result<Self> {
        Ok(Self {
            root: Root::open(root)?,
            options,
            owners: Owners::default(),
            file_systems: FileSystems::default(),
            found: Ahead::new(b""),
            first: VecDeque::new(),
            shards: BTreeSet::new(),
        })
    }

    /// Restrict the scan, before it begins, to the directory at `top`; the directories at `shards` are not entered,
    /// and come as `Frame::Shard`.
    pub fn restrict(&mut self, top: &[u8], shards: impl IntoIterator<Item = Vec<u8>>) {
        self.found = Ahead::new(top);
        self.shards = shards.into_iter().collect();
    }

    /// Return true if a pattern leaves out the directory at `path`, or one above it.
    pub(crate) fn leaves_out(&self, path: &[u8]) -> bool {
        let own = RelPath::trusted(path.to_vec());
        let mut paths = std::iter::once(path).chain(own.ancestors());
        paths.any(|path| {
            let (above, name) = (parent(path), basename(path));
            let mut patterns = self.options.patterns.iter();
            !path.is_empty() && patterns.any(|pattern| pattern.matches_entry(above, name, true))
        })
    }

    /// Number the file system of the root, a snapshot of `live`, as that of `live`, so that known
    /// digests of its files are found; does nothing if it is not a snapshot of `live`.
    pub fn of_snapshot(self, live: &[u8]) -> Result<Self> {
        let joined = self
            .file_systems
            .join(self.root.handle(), Root::open(live)?.handle());
        joined.map_err(|errno| Error::new("examine", live, errno))?;
        Ok(self)
    }

    /// Return the next frames that are ready; an empty list does not mean the end.
    fn ready(&mut self) -> Result<Vec<Frame>> {
        if self.first.is_empty() {
            self.first = self.found.ready().into();
        }
        self.take_batch()
    }

    /// Return the next frames; an empty list is the end.  After an error every call returns it.
    pub fn next(&mut self, look_up: &LookUp<'_>, stop: &Stop) -> Result<Vec<Frame>> {
        loop {
            let frames = self.ready()?;
            if !frames.is_empty() {
                return Ok(frames);
            }
            let tree = Tree {
                root: &self.root,
                options: &self.options,
                owners: &self.owners,
                file_systems: &self.file_systems,
                look_up,
                stop,
            };
            let reader = || Scanner {
                tree: &tree,
                reader: Reader::default(),
                shards: &self.shards,
            };
            self.first = self.found.next(self.options.threads, reader)?.into();
            if self.first.is_empty() {
                return Ok(Vec::new());
            }
        }
    }

    /// Examine `touched` paths, and nothing else; `CANCELED` after a stop.
    pub fn look(
        &self,
        touched: &[Touched],
        look_up: &LookUp<'_>,
        stop: &Stop,
    ) -> Result<LookResult> {
        let tree = Tree {
            root: &self.root,
            options: &self.options,
            owners: &self.owners,
            file_systems: &self.file_systems,
            look_up,
            stop,
        };
        touched::look(&tree, touched).map_err(|errno| Error::new("read", b"", errno))
    }

    /// Return a batch; of a large directory only as many parts as fit.
    fn take_batch(&mut self) -> Result<Vec<Frame>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH {
            let frame = match self.first.pop_front() {
                None => break,
                Some(ReadDirectory::Frame(frame)) => frame,
                Some(ReadDirectory::Large(mut large)) => {
                    let part = large.next();
                    let part = part.map_err(|errno| Error::new("read", large.path(), errno))?;
                    let Some(part) = part else { continue };
                    self.first.push_front(ReadDirectory::Large(large));
                    Frame::Read(part)
                }
            };
            bytes += frame.size();
            batch.push(frame);
        }
        progress::count_files(batch.iter().map(Frame::files).sum());
        Ok(batch)
    }
}

/// A thread of a scan.
struct Scanner<'a> {
    tree: &'a Tree<'a>,
    reader: Reader,
    shards: &'a BTreeSet<Vec<u8>>,
}

impl Read for Scanner<'_> {
    type Frame = ReadDirectory;

    /// Read a directory; of a shard only its file system and inode.
    fn read(&mut self, path: &[u8]) -> Outcome<Reading<ReadDirectory>> {
        if self.shards.contains(path) {
            self.reader.look(self.tree, path)
        } else {
            self.reader.read(self.tree, path)
        }
    }
}
