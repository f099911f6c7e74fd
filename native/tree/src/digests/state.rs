//! The state of one file with its digest, as a table stores it.
//!
//! A digest is valid as long as file system, inode, size, mtime and ctime of the file are the same,
//! so a file that was edited in place is hashed again, even if its size and mtime were restored.
//! A file system has the number that `file_systems` proves, or otherwise the kernel's.  Earlier
//! versions stored the kernel's number of all.
//!
//! The ctime also changes with the mode, the owner, the number of links and the name.  If one of
//! these has changed, it explains the new ctime, and the digest stays valid, provided that the file
//! has the same time of birth: inode numbers are reused.  One case is missed: since the last
//! commit the content was changed in place, size and mtime were restored, and mode, owner, links or
//! name were changed as well.

use huai_format::entries::Digest;
use huai_format::limits::DIGEST_BYTES;
use huai_git::cursor::Cursor;

/// The bytes of file system, inode, size, mtime and ctime.
pub(super) const IDENTITY: usize = 40;
/// The bytes of file system and inode.
const INODE: usize = 16;
/// The end of the attributes that change the ctime: links, mode, owner, group, folder, name.
const ATTRIBUTES: usize = IDENTITY + 28;
const BIRTH: usize = ATTRIBUTES + 4;
const DIGEST: usize = BIRTH + 8;
/// The bytes of a state in a table.
pub(super) const STATE: usize = DIGEST + DIGEST_BYTES;

/// The time of birth if the file system does not report one.
pub(super) const UNKNOWN: i64 = i64::MIN;

/// The state of one file, with its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State([u8; STATE]);

impl State {
    /// Make the state of a scanned record, without birth and digest.
    ///
    /// `folder` is the inode of the directory, not its path: renaming it does not change the ctime
    /// of the file.  `name` is a checksum; two names with the same one are taken for equal, which
    /// at worst costs a hashing.
    pub(super) fn new(record: &[u8], folder: u64, name: u32) -> Self {
        let (identity, rest) = record.split_at(IDENTITY);
        let (links, rest) = rest.split_at(4);
        let owners = &rest[4..16]; // behind the offset of the line
        let mut state = [0; STATE];
        let parts = [
            identity,
            links,
            owners,
            &folder.to_le_bytes(),
            &name.to_le_bytes(),
        ];
        let mut bytes = parts.into_iter().flatten();
        state.fill_with(|| bytes.next().copied().unwrap_or_default());
        Self(state).with(None, [0; DIGEST_BYTES])
    }

    /// Parse the first `STATE` bytes to a state; `None` if there are fewer.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied().map(Self)
    }

    pub(super) fn bytes(&self) -> &[u8; STATE] {
        &self.0
    }

    /// Return the state with a time of birth and a digest.
    #[must_use]
    pub(super) fn with(mut self, birth: Option<i64>, digest: Digest) -> Self {
        let birth = birth.unwrap_or(UNKNOWN).to_le_bytes();
        let end = &mut self.0[BIRTH..];
        for (to, from) in end.iter_mut().zip(birth.iter().chain(&digest)) {
            *to = *from;
        }
        self
    }

    pub(super) fn digest(&self) -> Digest {
        let digest = self.0.last_chunk::<DIGEST_BYTES>();
        digest.copied().unwrap_or_default()
    }

    /// Return the time of birth; `None` if it is unknown.
    pub(super) fn birth(&self) -> Option<i64> {
        let birth = self.0.get(BIRTH..).and_then(<[u8]>::first_chunk);
        birth
            .map(|bytes| i64::from_le_bytes(*bytes))
            .filter(|birth| *birth != UNKNOWN)
    }

    /// Return file system and inode.
    pub(super) fn inode(&self) -> &[u8] {
        self.part(0, INODE)
    }

    /// Return the number of the file system.
    pub(super) fn file_system(&self) -> u64 {
        let number = self.0.first_chunk();
        number.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Return the state on a file system with another number.
    #[must_use]
    pub(super) fn on(mut self, file_system: u64) -> Self {
        if let Some(number) = self.0.first_chunk_mut() {
            *number = file_system.to_le_bytes();
        }
        self
    }

    /// Return the key by which states are sorted and searched; two inodes may share one.
    pub(super) fn key(&self) -> u64 {
        let mut numbers = Cursor::new(&self.0);
        let mut number = || numbers.array().map_or(0, u64::from_le_bytes);
        number().rotate_left(40) ^ number()
    }

    /// Return the size in bytes.
    pub(super) fn size(&self) -> u64 {
        let size = self.part(INODE, INODE + 8).first_chunk();
        size.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Return the number of names.
    pub(super) fn links(&self) -> u32 {
        let links = self.part(IDENTITY, IDENTITY + 4).first_chunk();
        links.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Return the validity of this digest for the present state `now` of the same inode.
    pub(super) fn validity_for(&self, now: &Self) -> Validity {
        if self.part(0, IDENTITY) == now.part(0, IDENTITY) {
            return Validity::Same;
        }
        let all_but_ctime = IDENTITY - 8;
        let explained = self.part(0, all_but_ctime) == now.part(0, all_but_ctime)
            && self.part(IDENTITY, ATTRIBUTES) != now.part(IDENTITY, ATTRIBUTES);
        match self.birth() {
            Some(_) if explained => Validity::IfBornThen,
            _ => Validity::Nothing,
        }
    }

    fn part(&self, from: usize, to: usize) -> &[u8] {
        &self.0[from..to]
    }
}

/// A scanned file.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScannedFile {
    pub(super) now: State,
    /// The kernel's number of its file system.
    device: u64,
}

impl ScannedFile {
    /// Make it from `state`, with the kernel's number; `file_system` of the directory replaces that only on the
    /// `device` of the directory.
    pub(super) fn new(state: State, device: u64, file_system: u64) -> Self {
        let kernel_number = state.file_system();
        // A file of an overlay may be on a separate file system.
        let is_proved = file_system != 0 && kernel_number == device;
        Self {
            now: if is_proved {
                state.on(file_system)
            } else {
                state
            },
            device: kernel_number,
        }
    }

    /// Return the state as earlier versions stored it; `None` if it is the same.
    pub(super) fn earlier(&self) -> Option<State> {
        (self.now.file_system() != self.device).then(|| self.now.on(self.device))
    }
}

/// The validity of an earlier digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    /// The content is the same.
    Same,
    /// The content is the same if the file has the same time of birth.
    IfBornThen,
    /// The file has to be hashed.
    Nothing,
}
