//! Where objects come from, and where they go.

use crate::error::Result;
use crate::git::object::Kind;
use crate::git::oid::Oid;

/// A store of git objects.
pub trait ObjectReader {
    /// The content of an object; an error if it is missing or of another kind.
    ///
    /// Refuses what is larger than `limits::OBJECT_BYTES` before inflating it: nothing behind
    /// this interface can.
    fn read(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>>;
}

/// Takes git objects.
pub trait ObjectWriter {
    /// Keep an object; its id.
    fn write(&mut self, kind: Kind, content: &[u8]) -> Result<Oid>;
}

/// Keeps nothing: only ids are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Ids;

impl ObjectWriter for Ids {
    fn write(&mut self, kind: Kind, content: &[u8]) -> Result<Oid> {
        Ok(Oid::of_own(kind, content))
    }
}
