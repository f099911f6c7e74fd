//! What a scan says of one directory.

use rustix::io::Errno;

/// One directory, or a part of one that has many entries.
#[derive(Debug)]
pub enum Frame {
    /// It was read.
    Read(Directory),
    /// It stands in the place of the directory, and of all below it, that could not be read.
    Unreadable {
        /// From the root.
        path: Vec<u8>,
        /// Why.
        reason: Reason,
    },
}

/// One directory as it was seen.
///
/// A large one comes in parts, one right after the other, each with the path.
#[derive(Debug, Default)]
pub struct Directory {
    /// From the root.
    pub path: Vec<u8>,
    /// Its own attributes, as in FORMAT.md; empty in all parts but the first.
    pub attributes: Vec<u8>,
    /// A line for each file and symlink.
    pub leaves: Vec<u8>,
    /// One record for each file: `huai_server.scan.types.IDENTITY`.
    pub identities: Vec<u8>,
    /// What could not be looked at, or is left out and has to be told.
    pub problems: Vec<Problem>,
    /// Some file here has more than one name.
    pub hardlinks: bool,
    /// Entries that no snapshot holds; the first part says it of all.
    pub skipped: u64,
    /// Files that others may not read.
    pub unreadable: u64,
    /// No problems, and others may read all of it.
    pub is_plain: bool,
    /// The kernel's number of its file system.
    pub device: u64,
    /// Another that stays when it is mounted again; 0: nothing proves it.
    pub file_system: u64,
    /// Its number there.
    pub inode: u64,
}

/// An entry that is there and does not stand in the leaves.
#[derive(Debug)]
pub struct Problem {
    /// Empty: the directory itself.
    pub name: Vec<u8>,
    /// Why.
    pub reason: Reason,
}

/// Why an entry does not stand in a listing as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The kernel said so.
    Errno(Errno),
    /// The directory changed at each reading.
    KeepsChanging,
    /// A size or time that no line can hold.
    OutOfRange,
    /// The directory's own time: it is listed with the nearest one that fits.
    Time,
    /// A name that is rsync's and huai's own.
    Reserved,
    /// A file that rsync has not finished.
    Temporary,
}

impl Reason {
    /// Whether no snapshot holds the entry, whatever it is like.
    pub(crate) fn leaves_out(self) -> bool {
        matches!(self, Self::Reserved | Self::Temporary)
    }
}

impl Frame {
    /// Bytes that it holds.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Read(directory) => directory.size(),
            Self::Unreadable { path, .. } => path.len(),
        }
    }
}

impl Directory {
    /// Whether this goes on with the directory that came before it.
    pub fn goes_on(&self) -> bool {
        self.attributes.is_empty()
    }

    fn size(&self) -> usize {
        self.path.len()
            + self.attributes.len()
            + self.leaves.len()
            + self.identities.len()
            + size(&self.problems)
    }
}

/// Bytes that problems hold.
pub(crate) fn size(problems: &[Problem]) -> usize {
    let problem = |problem: &Problem| problem.name.len() + size_of::<Problem>();
    problems.iter().map(problem).sum()
}
