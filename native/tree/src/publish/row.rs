//! One operation after the other, until the first that fails.

use huai_format::path::is_reserved;
use rustix::io::Errno;

use crate::sys::call::Outcome;
use crate::sys::stop::Stop;

/// What became of a row of operations.
#[derive(Debug, Default)]
pub struct Row {
    /// How many were done; the one after them failed, if one did.
    pub done: usize,
    /// Why the row ended before its end.
    pub failure: Option<Failure>,
}

/// An operation that was not done.
#[derive(Debug)]
pub struct Failure {
    /// Where.
    pub path: Vec<u8>,
    /// Why.
    pub reason: Reason,
}

/// Why an operation was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The kernel said so.
    Errno(Errno),
    /// The path is huai's own.
    Reserved,
    /// A directory that is to go has something in it.
    NotEmpty,
    /// There is something else than the file whose attributes were to be set.
    NotRegular,
    /// The same of a symlink.
    NotSymlink,
    /// There is no directory to move.
    NoDirectory,
    /// Something stands where a directory was to be moved.
    Occupied,
    /// A hardlink without a leader.
    NoLeader,
    /// The file to link to is missing: this one.
    LeaderMissing(Vec<u8>),
    /// The file to link to is not what it should be: this one.
    LeaderDiffers(Vec<u8>),
    /// A new directory is to be made by itself: it does not lie ready as a whole.
    NotWhole,
    /// The former file cannot be kept: no hardlink can be made.
    NotKept(Errno),
}

impl From<Errno> for Reason {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// What an operation gives.
pub(super) type Done = Result<(), Failure>;

/// The failure of an operation at `path`.
pub(super) fn at(path: &[u8], reason: impl Into<Reason>) -> Failure {
    Failure {
        path: path.to_vec(),
        reason: reason.into(),
    }
}

/// What happened at `path`.
pub(super) trait At<T> {
    fn at(self, path: &[u8]) -> Result<T, Failure>;
}

impl<T> At<T> for Outcome<T> {
    fn at(self, path: &[u8]) -> Result<T, Failure> {
        self.map_err(|errno| at(path, errno))
    }
}

/// Refuses a path of huai's own.
pub(super) fn check(path: &[u8]) -> Done {
    if path.split(|byte| *byte == b'/').any(is_reserved) {
        return Err(at(path, Reason::Reserved));
    }
    Ok(())
}

/// Does `operation` with one item after the other.
pub(super) fn row<T>(items: &[T], stop: &Stop, mut operation: impl FnMut(&T) -> Done) -> Row {
    let mut row = Row::default();
    for item in items {
        if stop.is_set() {
            break;
        }
        if let Err(failure) = operation(item) {
            row.failure = Some(failure);
            break;
        }
        row.done += 1;
    }
    row
}
