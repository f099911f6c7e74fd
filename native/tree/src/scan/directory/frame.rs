//! The result of scanning one directory.

use huai_format::escape::unescape;
use huai_format::path::RelPath;
use huai_format::write::ListingText;
use huai_git::find::split_before;
use huai_sys::error::Errno;

/// The bytes of a file's record: device, inode, size, mtime and ctime in eight bytes each; number
/// of links, offset of its line, mode, user, group and padding in four each, all little-endian.
pub(crate) const RECORD: usize = 64;
/// The bytes of device, inode, size, mtime and ctime.
const IDENTITY: usize = 40;
/// The offsets of the link count, of the offset of the line, and of the mode in a file's record.
pub(crate) const LINKS: usize = 40;
pub(crate) const OFFSET: usize = 44;
pub(crate) const MODE: usize = 48;

/// The result for one directory, or for a part of a large one.
#[derive(Debug)]
pub enum Frame {
    /// A directory that was read.
    Read(Directory),
    /// An unreadable directory, with everything below it.
    Unreadable {
        /// The path from the root.
        path: Vec<u8>,
        /// The reason.
        reason: Reason,
    },
    /// The top of a shard, which another scan reads.
    Shard {
        /// The path from the root.
        path: Vec<u8>,
        /// The file system and inode that this scan sees.
        view: View,
    },
}

/// A directory as one machine sees it: its file system (`Directory::file_system`) and inode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    /// The number of the file system; 0 if nothing proves one.
    pub file_system: u64,
    /// The inode number.
    pub inode: u64,
}

impl View {
    /// Return true if both are the same directory, as far as known: an unknown file system fits all.
    pub fn fits(self, other: Self) -> bool {
        let file_systems = [self.file_system, other.file_system];
        self.inode == other.inode
            && (file_systems.contains(&0) || self.file_system == other.file_system)
    }
}

/// A scanned directory.
///
/// A large one comes in consecutive parts, each with the path.
#[derive(Debug, Default)]
pub struct Directory {
    /// The path from the root.
    pub path: Vec<u8>,
    /// Its own attributes, as in FORMAT.md; empty in all parts but the first.
    pub attributes: Vec<u8>,
    /// The lines of files and symlinks.
    pub leaves: Vec<u8>,
    /// The records of files (`RECORD`).
    pub identities: Vec<u8>,
    /// 32 bytes for each file, zeros where the digest is unknown; empty in the output of a scan.
    pub digests: Vec<u8>,
    /// The entries that could not be examined, or whose omission has to be reported.
    pub problems: Vec<Problem>,
    /// True if a file has more than one name.
    pub hardlinks: bool,
    /// The number of entries that no snapshot can hold; the first part counts those of all.
    pub skipped: u64,
    /// The number of files that others cannot read.
    pub unreadable: u64,
    /// True if there are no problems and others can read everything: nothing is remarked.
    pub is_plain: bool,
    /// The kernel's number of the file system.
    pub device: u64,
    /// A number of the file system that survives a remount; 0 if nothing proves one.
    pub file_system: u64,
    /// The inode number.
    pub inode: u64,
}

/// An entry that exists and is missing in the leaves.
#[derive(Debug)]
pub struct Problem {
    /// The name; empty for the directory itself.
    pub name: Vec<u8>,
    /// The reason.
    pub reason: Reason,
}

/// The reasons why the present state of an entry is not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// An error of the kernel.
    Errno(Errno),
    /// The directory changed at each reading.
    KeepsChanging,
    /// No line can hold the size or time.
    OutOfRange,
    /// The directory's own time does not fit: it is listed with the nearest one.
    Time,
    /// The name is reserved for rsync and huai.
    Reserved,
    /// rsync has not finished the file.
    Temporary,
    /// The file changed while it was read.
    Changed,
    /// The file has content that a scrub found damaged.
    Damaged,
    /// Another file system is mounted there, which is not entered.
    NotEntered,
    /// Another file system is mounted there, without the former entries.
    MountedOver,
    /// The file system that was mounted there is missing, with its entries.
    NotMounted,
    /// The worker of a shard failed, or left no result.
    NoResult,
    /// The worker of a shard saw another directory there.
    OtherView,
}

impl Problem {
    /// True if the problem is about an entry, not the directory itself, whose present state is unknown.
    pub(crate) fn is_of_entry(&self) -> bool {
        !self.name.is_empty() && !self.reason.leaves_out()
    }
}

impl Reason {
    /// Return true if the entry is left out on purpose: a reserved name or an unfinished file.
    pub(crate) fn leaves_out(self) -> bool {
        matches!(self, Self::Reserved | Self::Temporary)
    }
}

impl Frame {
    /// Return the directory, if it was read.
    pub(crate) fn directory(&mut self) -> Option<&mut Directory> {
        match self {
            Self::Read(directory) => Some(directory),
            Self::Unreadable { .. } | Self::Shard { .. } => None,
        }
    }

    /// Return the path from the root.
    pub(crate) fn path(&self) -> &[u8] {
        match self {
            Self::Read(Directory { path, .. })
            | Self::Unreadable { path, .. }
            | Self::Shard { path, .. } => path,
        }
    }

    /// Return the number of its files.
    pub(crate) fn files(&self) -> usize {
        match self {
            Self::Read(directory) => directory.identities.len() / RECORD,
            Self::Unreadable { .. } | Self::Shard { .. } => 0,
        }
    }

    /// Return the number of bytes that the frame holds in memory.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Read(directory) => directory.size(),
            Self::Unreadable { path, .. } | Self::Shard { path, .. } => path.len(),
        }
    }
}

impl Directory {
    /// Return true if this is a further part of the directory before it.
    pub fn is_continuation(&self) -> bool {
        self.attributes.is_empty()
    }

    /// Return the directory as a layout takes it.
    pub fn listing(&self) -> ListingText<'_> {
        ListingText {
            path: &self.path,
            attributes: &self.attributes,
            leaves: &self.leaves,
            digests: &self.digests,
        }
    }

    /// Return the raw name of a file, by its number.
    pub(crate) fn name_of(&self, file: usize) -> Vec<u8> {
        let record = self.identities.chunks_exact(RECORD).nth(file);
        let name = record.map_or(&b""[..], |record| self.name(record));
        // The lines of a scan are valid.
        unescape(name).unwrap_or_default().into_owned()
    }

    /// Return the path of a file, by its number.
    pub(crate) fn path_of(&self, file: usize) -> Vec<u8> {
        let path = RelPath::trusted(self.path.clone());
        path.join(&self.name_of(file)).as_bytes().to_vec()
    }

    /// Return the bytes that identify the state of a file, by its number; empty beyond the last
    /// file.
    pub(crate) fn identity(&self, file: usize) -> &[u8] {
        let record = self.identities.chunks_exact(RECORD).nth(file);
        record.map_or(&[], |record| &record[..IDENTITY])
    }

    /// Return the name of a record's file, as in its line.
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

/// Return a number of four bytes in a record.
pub(crate) fn word(record: &[u8], at: usize) -> u32 {
    let bytes = record.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Return the file system and inode of a record, with a number that survives a remount if possible; `None` if it is
/// too short.
pub(crate) fn inode(directory: &Directory, record: &[u8]) -> Option<[u8; 16]> {
    let mut inode: [u8; 16] = *record.first_chunk()?;
    let (device, _) = inode.split_first_chunk_mut()?;
    // A file of an overlay may be on a separate file system.
    if directory.file_system != 0 && u64::from_le_bytes(*device) == directory.device {
        *device = directory.file_system.to_le_bytes();
    }
    Some(inode)
}

/// Return the bytes that problems hold.
pub(crate) fn size(problems: &[Problem]) -> usize {
    let problem = |problem: &Problem| problem.name.len() + size_of::<Problem>();
    problems.iter().map(problem).sum()
}
