//! Interfaces to read and write git objects.

use huai_git::error::Result;
use huai_git::object::Kind;
use huai_git::oid::Oid;

/// A store of git objects.
pub trait ObjectReader {
    /// Return the content of an object; an error if it is missing or of another kind.
    ///
    /// Refuses objects larger than `limits::OBJECT_BYTES` before inflating them: callers
    /// cannot.
    fn read(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>>;

    /// Return the content of an object, or only its first `size` bytes, which may be damaged.
    fn read_head(&self, oid: &Oid, kind: Kind, _size: usize) -> Result<Vec<u8>> {
        self.read(oid, kind)
    }
}

/// A destination for git objects.
pub trait ObjectWriter {
    /// Store an object; returns its id.
    fn write(&mut self, kind: Kind, content: &[u8]) -> Result<Oid>;
}

/// A writer that only computes ids.
#[derive(Debug, Clone, Copy)]
pub struct Ids;

impl ObjectWriter for Ids {
    fn write(&mut self, kind: Kind, content: &[u8]) -> Result<Oid> {
        Ok(Oid::of_own(kind, content))
    }
}
