//! Why there is no tree to commit, or not the one that is there.

use huai_format::error::Error as FormatError;

use crate::scan::directory::Reason;
use crate::sys::error::Error;

/// A call that could not go on, by what failed.
#[derive(Debug)]
pub enum Failure {
    /// Reading the tree: memory or file handles are short.
    Tree(Error),
    /// The tree's root cannot be read, or, without a reason, is not there any more.
    Root(Option<Reason>),
    /// The table of digests cannot be read or written.
    Digests(Error),
    /// The files of the tree cannot be read, though none of them is at fault.
    Contents(Error),
    /// The last commit cannot be read, or an object cannot be written.
    Format(FormatError),
    /// The caller stopped the call, or a function of the caller failed.
    Stopped,
}

/// What a call gives.
pub type Result<T> = std::result::Result<T, Failure>;

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

/// What was committed in the place of a path that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The entry of the last commit, with all below it.
    Kept,
    /// Nothing: the last commit has no entry.
    LeftOut,
    /// The directory with the nearest time that the format can hold.
    Clamped,
}

/// A path that could not be read, or not as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From the root.
    pub path: Vec<u8>,
    /// Why it could not be read.
    pub reason: Reason,
    /// What was committed.
    pub outcome: Outcome,
}
