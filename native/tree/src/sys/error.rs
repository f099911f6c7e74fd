//! What was tried, on which path, and what the kernel said.

pub use rustix::io::Errno;

/// A long call could not go on.  Facts only: Python says what they mean and what to do about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What was tried, as a verb: "open".
    pub doing: &'static str,
    /// On which path.
    pub path: Vec<u8>,
    /// What the kernel said; `NOMEM` also where memory was asked for and not there.
    pub errno: Errno,
}

/// What a long call gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(doing: &'static str, path: &[u8], errno: Errno) -> Self {
        Self {
            doing,
            path: path.to_vec(),
            errno,
        }
    }
}

/// True if this process or the machine lacks memory or handles, and no file is at fault.
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
