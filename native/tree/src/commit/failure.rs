//! The errors and problems of a commit.

use huai_git::error::Error as FormatError;
use huai_sys::error::Error;

use crate::scan::directory::Reason;

/// An error that ends a commit.
#[derive(Debug)]
pub enum Failure {
    /// The tree cannot be read: memory or file handles are short.
    Tree(Error),
    /// The tree's root cannot be read or, without a reason, is missing.
    Root(Option<Reason>),
    /// The table of digests cannot be read or written.
    Digests(Error),
    /// The files of the tree cannot be read, though none of them is at fault.
    Contents(Error),
    /// The last commit cannot be read, or an object cannot be written.
    Format(FormatError),
    /// The caller stopped the call, or a callback failed.
    Stopped,
}

/// The result of a commit.
pub type Result<T> = std::result::Result<T, Failure>; // prose: of `Failure`

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

/// The committed substitute for a path that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Substitute {
    /// The entry of the last commit, with everything below it.
    Kept,
    /// No entry, because the last commit has none.
    LeftOut,
    /// The directory, with the nearest time that the format can hold.
    Clamped,
}

/// A path whose present state could not be read or committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitProblem {
    /// The path from the root.
    pub path: Vec<u8>,
    /// The reason.
    pub reason: Reason,
    /// The committed substitute.
    pub outcome: Substitute,
}
