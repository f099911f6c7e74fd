//! The files whose digests are looked up, and the results.

use huai_format::entries::Digest;
use huai_git::crc::crc32;
use huai_sys::error::Result;

use super::state::{ScannedFile, State};
use crate::scan::directory::{Directory, RECORD};

/// A file with an uncertain digest.
#[derive(Debug, Clone)]
pub struct Doubt {
    /// The numbers of its directory and record in the call of `look_up`.
    pub place: (usize, usize),
    /// Its digest, provided that this is the file's time of birth.
    pub if_born: Option<(i64, Digest)>,
}

/// The result of hashing an uncertain file: its time of birth, and its digest.
pub type HashedFile = (Option<i64>, Digest);

/// The digests of one commit.
pub trait DigestTable {
    /// Look up digests and return the uncertain files; `settle` has to be called next.
    fn look_up(&mut self, directories: &[&Directory]) -> Result<Vec<Doubt>>;

    /// Return the digest column of each directory of `look_up`, given the result for each uncertain
    /// file; zeros for files without a result.
    fn settle(&mut self, found: &[Option<HashedFile>]) -> Result<Vec<Vec<u8>>>;
}

/// A file of the last `look_up`.
#[derive(Debug)]
pub(super) enum PendingFile {
    Known(State),
    /// A file without a certain digest, and the number of its doubt.
    Doubtful(State, usize),
}

impl PendingFile {
    /// Return the file with its digest, given the results for uncertain files; `None` without one.
    pub(super) fn settle(self, results: &[Option<HashedFile>]) -> Option<State> {
        match self {
            Self::Known(state) => Some(state),
            Self::Doubtful(now, doubt) => {
                let result = results.get(doubt).copied().flatten();
                result.map(|(birth, digest)| now.with(birth, digest))
            }
        }
    }
}

/// Return the files of a directory as scanned, in the order of their records.
pub(super) fn scanned_files(directory: &Directory) -> impl Iterator<Item = ScannedFile> {
    let records = directory.identities.chunks_exact(RECORD);
    records.map(|record| {
        let name = crc32(directory.name(record));
        let state = State::new(record, directory.inode, name);
        ScannedFile::new(state, directory.device, directory.file_system)
    })
}
