//! An entry of a list.

use huai_format::entries::{DIRECTORY_MODE, Digest, FILE_MODE, SYMLINK_MODE};
use huai_format::limits::{SIZE_MAX, TARGET_BYTES};

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, pipe or socket, which no commit holds.
    Special,
}

/// An entry of a list, as the list states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// The path from the root; empty for the root itself.
    pub path: Vec<u8>,
    /// The type.
    pub kind: EntryType,
    /// The size in bytes, of files.
    pub size: u64,
    /// Nanoseconds since the epoch; `UNSTATED` for a directory without a time.
    pub mtime: i128,
    /// Permission bits with set-id bits and sticky.
    pub mode: u16,
    /// The ids of user and group.
    pub owner: (u32, u32),
    /// The target, of symlinks.
    pub target: Vec<u8>,
    /// A number that all names of a file share, if it has several.
    pub group: Option<u32>,
    /// The digest of the content, of files, if the list states it.
    pub digest: Option<Digest>,
}

/// The mtime of a directory whose time the list does not state (`EntryList::complete`).
pub const UNSTATED: i64 = i64::MIN;

impl ListEntry {
    /// True if a line of a manifest can hold the entry.
    pub(crate) fn fits(&self) -> bool {
        let is_directory = self.kind == EntryType::Directory;
        let is_timed = |time| is_directory || time != UNSTATED;
        i64::try_from(self.mtime).is_ok_and(is_timed)
            && match self.kind {
                EntryType::File => self.size <= SIZE_MAX,
                EntryType::Symlink => (1..=TARGET_BYTES).contains(&self.target.len()),
                EntryType::Directory => true,
                EntryType::Special => false,
            }
    }
}

/// Return the mode that a line leaves out.
pub(crate) fn usual_mode(kind: EntryType) -> u16 {
    match kind {
        EntryType::Directory => DIRECTORY_MODE,
        EntryType::Symlink => SYMLINK_MODE,
        EntryType::File | EntryType::Special => FILE_MODE,
    }
}
