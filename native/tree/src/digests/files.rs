//! The files whose digests are asked for, and what is said of them.

use huai_format::crc::crc32;
use huai_format::entry::Digest;
use huai_format::find::split_before;

use super::state::{RECORD, Seen, State};

/// The regular files of a directory, or some of them, as a scan saw them.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The lines of all leaves of the directory.
    pub leaves: &'a [u8],
    /// One record for each file: `huai_server.scan.types.IDENTITY`.
    pub records: &'a [u8],
    /// The inode of the directory.
    pub folder: u64,
    /// The kernel's number of its file system.
    pub device: u64,
    /// The number that stays (`Directory::file_system`).
    pub file_system: u64,
}

/// A file whose digest is not known for sure.
#[derive(Debug, Clone)]
pub struct Doubt {
    /// Of those that were asked for together: which directory, and which record.
    pub place: (usize, usize),
    /// Its digest, if this is the file's time of birth.
    pub if_born: Option<(i64, Digest)>,
}

/// What was found out about a doubtful file: when it was born, and its digest.
pub type Found = (Option<i64>, Digest);

/// A file of those that were asked for last.
#[derive(Debug)]
pub(super) enum Asked {
    Known(State),
    /// The number of its doubt.
    Doubtful(State, usize),
}

impl Asked {
    /// The file with its digest, given what was found out about doubtful ones.
    pub(super) fn settle(self, found: &[Option<Found>]) -> Option<State> {
        match self {
            Self::Known(state) => Some(state),
            Self::Doubtful(now, doubt) => {
                let found = found.get(doubt).copied().flatten();
                found.map(|(birth, digest)| now.with(birth, digest))
            }
        }
    }
}

impl Files<'_> {
    pub(super) fn all(&self) -> Vec<Seen> {
        let records = self.records.chunks_exact(RECORD);
        records.map(|record| self.seen(record)).collect()
    }

    pub(super) fn seen(&self, record: &[u8]) -> Seen {
        let record: [u8; RECORD] = record.try_into().unwrap_or([0; RECORD]);
        let state = State::new(&record, self.folder, crc32(self.name(&record)));
        Seen::new(state, self.device, self.file_system)
    }

    /// The name of the file of a record, as it stands in its line.
    fn name(&self, record: &[u8; RECORD]) -> &[u8] {
        let offset = record.get(44..48).and_then(|bytes| bytes.first_chunk());
        let offset = offset.map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
        let line = &self.leaves[offset..];
        split_before(line, b'\t').0
    }
}
