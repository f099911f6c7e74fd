//! What a scan says of one directory.

use huai_format::escape::unescape;
use huai_format::find::split_before;
use huai_format::layout::Listing;
use huai_format::path::RelPath;
use rustix::io::Errno;

/// Bytes of a file's record: device, inode, size, mtime and ctime in eight bytes each; number of
/// links, offset of its line, mode, user, group and padding in four each, all little-endian.
pub(crate) const RECORD: usize = 64;
/// Device, inode, size, mtime, ctime.
const IDENTITY: usize = 40;
/// Where the link count, the offset of the line and the mode of a file are in its record.
pub(crate) const LINKS: usize = 40;
pub(crate) const OFFSET: usize = 44;
pub(crate) const MODE: usize = 48;

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
    /// One record for each file (`RECORD`).
    pub identities: Vec<u8>,
    /// 32 bytes for each file, zeros where the digest is unknown; empty in the output of a scan.
    pub digests: Vec<u8>,
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
    /// The file changed while it was read.
    Changed,
    /// The file has the content of which a scrub found that it is damaged.
    Damaged,
    /// Another file system is mounted there, which is not entered.
    NotEntered,
    /// Another file system is mounted there, with nothing in it that was there before.
    MountedOver,
    /// The file system that was mounted there is not, and nothing that it held is there.
    NotMounted,
}

impl Problem {
    /// True if an entry of the directory, not the directory itself, is not as it is committed.
    pub(crate) fn is_of_entry(&self) -> bool {
        !self.name.is_empty() && !self.reason.leaves_out()
    }
}

impl Reason {
    /// Whether no snapshot holds the entry, whatever it is like.
    pub(crate) fn leaves_out(self) -> bool {
        matches!(self, Self::Reserved | Self::Temporary)
    }
}

impl Frame {
    /// The directory, if it was read.
    pub(crate) fn directory(&mut self) -> Option<&mut Directory> {
        match self {
            Self::Read(directory) => Some(directory),
            Self::Unreadable { .. } => None,
        }
    }

    /// From the root.
    pub(crate) fn path(&self) -> &[u8] {
        match self {
            Self::Read(Directory { path, .. }) | Self::Unreadable { path, .. } => path,
        }
    }

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

    /// The directory as it is laid out.
    pub fn listing(&self) -> Listing<'_> {
        Listing {
            path: &self.path,
            attributes: &self.attributes,
            leaves: &self.leaves,
            digests: &self.digests,
        }
    }

    /// The raw name of a file, by its number.
    pub(crate) fn name_of(&self, file: usize) -> Vec<u8> {
        let record = self.identities.chunks_exact(RECORD).nth(file);
        let name = record.map_or(&b""[..], |record| self.name(record));
        // What a scan wrote can be read.
        unescape(name).unwrap_or_default().into_owned()
    }

    /// The path of a file, by its number.
    pub(crate) fn path_of(&self, file: usize) -> Vec<u8> {
        let path = RelPath::trusted(self.path.clone());
        path.join(&self.name_of(file)).as_bytes().to_vec()
    }

    /// What tells the state of a file from every other, by its number.
    pub(crate) fn identity(&self, file: usize) -> &[u8] {
        let record = self.identities.chunks_exact(RECORD).nth(file);
        record.map_or(&[], |record| &record[..IDENTITY])
    }

    /// The name of the file of a record, as it stands in its line.
    pub(crate) fn name(&self, record: &[u8]) -> &[u8] {
        let line = self.leaves.get(word(record, OFFSET) as usize..);
        split_before(line.unwrap_or_default(), b'\t').0
    }

    fn size(&self) -> usize {
        self.path.len()
            + self.attributes.len()
            + self.leaves.len()
            + self.identities.len()
            + size(&self.problems)
    }
}

/// A number of four bytes in a record.
pub(crate) fn word(record: &[u8], at: usize) -> u32 {
    let bytes = record.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Bytes that problems hold.
pub(crate) fn size(problems: &[Problem]) -> usize {
    let problem = |problem: &Problem| problem.name.len() + size_of::<Problem>();
    problems.iter().map(problem).sum()
}
