//! The files whose digests are asked for, and what is said of them.

use huai_format::crc::crc32;
use huai_format::entry::Digest;

use super::state::{Seen, State};
use crate::scan::directory::{Directory, RECORD};
use crate::sys::error::Result;

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

/// The digests of one commit.
pub trait DigestTable {
    /// The files whose digests have to be found out; `settle` has to be called next.
    fn look_up(&mut self, directories: &[&Directory]) -> Result<Vec<Doubt>>;

    /// The digest column of each directory of `look_up`, given what was found out about each
    /// doubtful file; zeros where that is nothing.
    fn settle(&mut self, found: &[Option<Found>]) -> Result<Vec<Vec<u8>>>;
}

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

/// The files of a directory as a scan saw them.
pub(super) fn seen(directory: &Directory) -> impl Iterator<Item = Seen> {
    let records = directory.identities.chunks_exact(RECORD);
    records.map(|record| {
        let name = crc32(directory.name(record));
        let state = State::new(record, directory.inode, name);
        Seen::new(state, directory.device, directory.file_system)
    })
}
