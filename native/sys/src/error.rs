//! The errors of system calls: operation, path and errno.

pub use rustix::io::Errno;

/// An error of a long call.  Python adds its meaning and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    // prose: each crate has one
    /// The operation, as a verb: "open".
    pub doing: &'static str,
    /// The path.
    pub path: Vec<u8>,
    /// The errno; `NOMEM` also if an allocation failed.
    pub errno: Errno,
}

/// The result of a long call.
pub type Result<T> = std::result::Result<T, Error>; // prose: each crate has one

impl Error {
    /// Make an error.
    pub fn new(doing: &'static str, path: &[u8], errno: Errno) -> Self {
        Self {
            doing,
            path: path.to_vec(),
            errno,
        }
    }
}

/// Return true if the process or the machine lacks memory or handles, and no file is at fault.
pub fn is_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

impl std::fmt::Display for Error {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.escape_ascii();
        write!(to, "{} {path}: {}", self.doing, self.errno)
    }
}

impl std::error::Error for Error {}
