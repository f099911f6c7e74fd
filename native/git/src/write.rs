//! Writes a pack, record by record.

use crate::error::Result;
use crate::object::{PackedForm, put_header};
use crate::oid::Checksum;
use crate::records::header;

/// The bytes that are passed on at once.
const PIECE_BYTES: usize = 256 << 10;

/// A destination for the bytes of a pack.
pub type PackSink<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// A pack that is being written.
pub struct PackOut<'a, 'b> {
    put: &'a mut PackSink<'b>,
    held: Vec<u8>,
    checksum: Checksum,
}

impl<'a, 'b> PackOut<'a, 'b> {
    /// Begin a pack; the caller then writes `count` records, and calls `end`.
    pub fn begin(count: u32, put: &'a mut PackSink<'b>) -> Self {
        Self {
            put,
            held: header(count),
            checksum: Checksum::default(),
        }
    }

    /// Write a record, given its form, its inflated size and its compressed bytes.
    pub fn record(&mut self, form: PackedForm, size: usize, data: &[u8]) -> Result<()> {
        put_header(form, size as u64, &mut self.held);
        self.held.extend_from_slice(data);
        if self.held.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// End the pack with its checksum after the last record.
    pub fn end(mut self) -> Result<()> {
        self.flush()?;
        (self.put)(&self.checksum.finish())
    }

    /// Write the held bytes, adding them to the checksum.
    fn flush(&mut self) -> Result<()> {
        self.checksum.update(&self.held);
        (self.put)(&self.held)?;
        self.held.clear();
        Ok(())
    }
}
