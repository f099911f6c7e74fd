//! One state of one file with its digest, as it stands in a table.
//!
//! A digest is valid as long as device, inode, size, mtime and ctime of the file are the same, so a
//! file that was edited in place is read again, even if its size and mtime were put back.
//!
//! The ctime also changes with the mode, the owner, the number of links and the name.  If one of
//! these has changed, it explains the new ctime, and the digest stays valid, provided that the file
//! has the same time of birth: inode numbers are used again.  One case is missed: since the last
//! commit the content was changed in place, size and mtime were put back, and mode, owner, links or
//! name were changed as well.

use huai_format::cursor::Cursor;
use huai_format::entry::Digest;
use huai_format::limits::DIGEST_BYTES;

/// A record of the scan: `huai_server.scan.types.IDENTITY`.
pub(super) const RECORD: usize = 64;
/// Device, inode, size, mtime, ctime.
pub(super) const IDENTITY: usize = 40;
/// Device and inode.
const INODE: usize = 16;
/// Where the attributes end that change the ctime: links, mode, owner, group, folder, name.
const ATTRIBUTES: usize = IDENTITY + 28;
const BIRTH: usize = ATTRIBUTES + 4;
const DIGEST: usize = BIRTH + 8;
/// Bytes of a state in a table.
pub(super) const STATE: usize = DIGEST + DIGEST_BYTES;

/// Stands for a time of birth that the file system does not say.
pub(super) const UNKNOWN: i64 = i64::MIN;

/// All that is known of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State([u8; STATE]);

impl State {
    /// What a scan saw, without birth and digest.
    ///
    /// `folder` is the inode of the directory, and not its path: renaming it leaves the ctime of
    /// the file alone.  `name`: a checksum; two names with one checksum are taken for the same,
    /// which costs a reading and nothing else.
    pub(super) fn seen(record: &[u8; RECORD], folder: u64, name: u32) -> Self {
        let (identity, rest) = record.split_at(IDENTITY);
        let (links, rest) = rest.split_at(4);
        let owners = rest.get(4..16).unwrap_or_default(); // behind the offset of the line
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

    /// The state at the front of `bytes`.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied().map(Self)
    }

    pub(super) fn bytes(&self) -> &[u8; STATE] {
        &self.0
    }

    /// The same file with its digest.
    #[must_use]
    pub(super) fn with(mut self, birth: Option<i64>, digest: Digest) -> Self {
        let birth = birth.unwrap_or(UNKNOWN).to_le_bytes();
        let end = self.0.get_mut(BIRTH..).unwrap_or_default();
        for (to, from) in end.iter_mut().zip(birth.iter().chain(&digest)) {
            *to = *from;
        }
        self
    }

    pub(super) fn digest(&self) -> Digest {
        let digest = self.0.last_chunk::<DIGEST_BYTES>();
        digest.copied().unwrap_or_default()
    }

    pub(super) fn birth(&self) -> Option<i64> {
        let birth = self.0.get(BIRTH..).and_then(<[u8]>::first_chunk);
        birth
            .map(|bytes| i64::from_le_bytes(*bytes))
            .filter(|birth| *birth != UNKNOWN)
    }

    /// Device and inode.
    pub(super) fn inode(&self) -> &[u8] {
        self.part(0, INODE)
    }

    /// By which states are sorted and found; two inodes may share one.
    pub(super) fn key(&self) -> u64 {
        let mut numbers = Cursor::new(&self.0);
        let mut number = || numbers.array().map_or(0, u64::from_le_bytes);
        number().rotate_left(40) ^ number()
    }

    /// Bytes of content.
    pub(super) fn size(&self) -> u64 {
        let size = self.part(INODE, INODE + 8).first_chunk();
        size.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// How many names the file has.
    pub(super) fn links(&self) -> u32 {
        let links = self.part(IDENTITY, IDENTITY + 4).first_chunk();
        links.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// What is known of `now` by this earlier state of the same inode.
    pub(super) fn tells(&self, now: &Self) -> Told {
        if self.part(0, IDENTITY) == now.part(0, IDENTITY) {
            return Told::Same;
        }
        let all_but_ctime = IDENTITY - 8;
        let explained = self.part(0, all_but_ctime) == now.part(0, all_but_ctime)
            && self.part(IDENTITY, ATTRIBUTES) != now.part(IDENTITY, ATTRIBUTES);
        match self.birth() {
            Some(_) if explained => Told::IfBornThen,
            _ => Told::Nothing,
        }
    }

    fn part(&self, from: usize, to: usize) -> &[u8] {
        self.0.get(from..to).unwrap_or_default()
    }
}

/// What an earlier state says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// The content is the same.
    Same,
    /// It is the same if the file has the same time of birth.
    IfBornThen,
    /// It has to be read.
    Nothing,
}
