//! Carries out operations in order, until the first failure.

use huai_format::path::is_reserved;
use huai_sys::call::Outcome;
use huai_sys::error::Errno;
use huai_sys::stop::Stop;

/// The result of a row of operations, which are done in order until the first failure or a stop.
#[derive(Debug, Default)]
pub struct RowResult {
    /// The number of completed operations; the one after them failed, if one did.
    pub done: usize,
    /// The reason for an early end.
    pub failure: Option<OperationFailure>,
}

/// An operation that failed.
#[derive(Debug)]
pub struct OperationFailure {
    /// The path.
    pub path: Vec<u8>,
    /// The reason.
    pub reason: FailureReason,
}

/// The reasons for which an operation fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureReason {
    /// An error of the kernel.
    Errno(Errno),
    /// The path is reserved for huai.
    Reserved,
    /// A directory to remove is not empty.
    NotEmpty,
    /// An entry whose attributes were to be set is not a regular file.
    NotRegular,
    /// An entry whose attributes were to be set is not a symlink.
    NotSymlink,
    /// The directory to move is missing.
    NoDirectory,
    /// An entry exists where a directory was to be moved.
    Occupied,
    /// A hardlink has no leader.
    NoLeader,
    /// This file to link to is missing.
    LeaderMissing(Vec<u8>),
    /// This file to link to differs from its metadata.
    LeaderDiffers(Vec<u8>),
    /// A staged directory is incomplete: it has to be made entry by entry.
    NotWhole,
    /// The former file cannot be kept, because a hardlink cannot be made.
    NotKept(Errno),
}

impl From<Errno> for FailureReason {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// The result of an operation.
pub(super) type Done = Result<(), OperationFailure>;

/// Make the failure of an operation at `path`.
pub(super) fn at(path: &[u8], reason: impl Into<FailureReason>) -> OperationFailure {
    OperationFailure {
        path: path.to_vec(),
        reason: reason.into(),
    }
}

/// A conversion of errors into failures at `path`.
pub(super) trait At<T> {
    fn at(self, path: &[u8]) -> Result<T, OperationFailure>;
}

impl<T> At<T> for Outcome<T> {
    fn at(self, path: &[u8]) -> Result<T, OperationFailure> {
        self.map_err(|errno| at(path, errno))
    }
}

/// Refuse a path that is reserved for huai.
pub(super) fn reject_reserved(path: &[u8]) -> Done {
    if path.split(|byte| *byte == b'/').any(is_reserved) {
        return Err(at(path, FailureReason::Reserved));
    }
    Ok(())
}

/// Call `operation` with one item after the other, until the first failure or a stop.
pub(super) fn row<T>(items: &[T], stop: &Stop, mut operation: impl FnMut(&T) -> Done) -> RowResult {
    let mut row = RowResult::default();
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
