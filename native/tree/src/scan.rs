//! A whole tree, directory by directory, in tree order.

use crate::ahead::{Ahead, Read};
use crate::call::Outcome;
use crate::directory::{Frame, Reader, Tree};
use crate::error::Result;
use crate::exclude::Pattern;
use crate::handle::Root;
use crate::owners::{LookUp, Owners};
use crate::queue::Reading;
use crate::stop::Stop;

/// How to scan.
#[derive(Debug)]
pub struct Options {
    /// What is left out.
    pub patterns: Vec<Pattern>,
    /// List a mount point as an empty directory.
    pub one_file_system: bool,
    /// Record owners and groups; otherwise everything belongs to root.
    pub owners: bool,
    /// Directories looked at at the same time.
    pub threads: usize,
}

/// A tree on its way to the caller.
#[derive(Debug)]
pub struct Scan {
    root: Root,
    options: Options,
    owners: Owners,
    frames: Ahead<Frame>,
}

impl Scan {
    /// Begins at the directory `root`, which may be a symlink.
    pub fn open(root: &[u8], options: Options) -> Result<Self> {
        Ok(Self {
            root: Root::open(root)?,
            options,
            owners: Owners::default(),
            frames: Ahead::new(b""),
        })
    }

    /// The file system of the root.
    pub fn device(&self) -> u64 {
        self.root.device
    }

    /// The next frames, as far as they are there already; none may still mean that some follow.
    pub fn ready(&mut self) -> Vec<Frame> {
        self.frames.ready()
    }

    /// The next frames; none: that was all.  After an error there is nothing but that error.
    pub fn next(&mut self, look_up: &LookUp<'_>, stop: &Stop) -> Result<Vec<Frame>> {
        let tree = Tree {
            root: &self.root,
            options: &self.options,
            owners: &self.owners,
            look_up,
            stop,
        };
        let reader = || Scanner {
            tree: &tree,
            reader: Reader::default(),
        };
        self.frames.next(self.options.threads, reader)
    }
}

/// One thread of a scan.
struct Scanner<'a> {
    tree: &'a Tree<'a>,
    reader: Reader,
}

impl Read for Scanner<'_> {
    type Frame = Frame;

    fn read(&mut self, path: &[u8]) -> Outcome<Reading<Frame>> {
        self.reader.read(self.tree, path)
    }
}
