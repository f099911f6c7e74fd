//! What was tried, on which path, and what the kernel said.

use rustix::io::Errno;

/// A system call failed.  Facts only: Python says what they mean and what to do about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What was tried, as a verb: "open".
    pub doing: &'static str,
    /// The path, below the root that the caller named.
    pub path: Vec<u8>,
    /// What the kernel said.
    pub errno: Errno,
}

/// What a long call gives.
pub type Result<T> = std::result::Result<T, Error>;
