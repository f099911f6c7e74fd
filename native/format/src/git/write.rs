//! Writes a pack, record by record.

use crate::error::Result;
use crate::git::object::{Made, put_header};
use crate::git::oid::Checksum;
use crate::git::records::header;

/// So many bytes are handed on at once.
const PIECE_BYTES: usize = 256 << 10;

/// Takes the bytes of a pack.
pub type Put<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// A pack on its way out.
pub struct PackOut<'a, 'b> {
    put: &'a mut Put<'b>,
    held: Vec<u8>,
    checksum: Checksum,
}

impl<'a, 'b> PackOut<'a, 'b> {
    /// Of `count` records.
    pub fn begin(count: u32, put: &'a mut Put<'b>) -> Self {
        Self {
            put,
            held: header(count),
            checksum: Checksum::default(),
        }
    }

    /// The next record: what it is made from, its size when it is inflated, and the compressed bytes.
    pub fn record(&mut self, made: Made, size: usize, data: &[u8]) -> Result<()> {
        put_header(made, size as u64, &mut self.held);
        self.held.extend_from_slice(data);
        if self.held.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// After the last record.
    pub fn end(mut self) -> Result<()> {
        self.flush()?;
        (self.put)(&self.checksum.finish())
    }

    fn flush(&mut self) -> Result<()> {
        self.checksum.update(&self.held);
        (self.put)(&self.held)?;
        self.held.clear();
        Ok(())
    }
}
