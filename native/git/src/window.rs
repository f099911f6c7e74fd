//! Reads ranges of a pack, with a bounded part of it in memory.

use crate::bug::fit;
use crate::crc::Crc32;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::object::{Form, take_header};

/// A source of the bytes of a pack or an index.
pub trait Source {
    /// Return the size in bytes.
    fn size(&self) -> u64;

    /// Fill `room` with the bytes at `offset`; a source that ends early is an error.
    fn read_at(&self, offset: u64, room: &mut [u8]) -> Result<()>;
}

impl<S: Source + ?Sized> Source for &S {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, room: &mut [u8]) -> Result<()> {
        (**self).read_at(offset, room)
    }
}

impl Source for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, room: &mut [u8]) -> Result<()> {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..)?.get(..room.len()))
            .ok_or_else(|| Error::new("a pack that ends early"))?;
        room.copy_from_slice(bytes);
        Ok(())
    }
}

/// The bytes that are read first for an object; doubled each time that reading continues.
const FIRST_PIECE_BYTES: u64 = 4 << 10;
const PIECE_BYTES: u64 = 256 << 10;
/// The bytes that are available at once, except near the end: no header is longer.
const HEAD_BYTES: u64 = 64;

/// A reading position in a pack.
pub struct Window<S> {
    source: S,
    piece: Vec<u8>,
    start: u64,
    at: u64,
    end: u64,
    crc: Crc32,
}

impl<S: Source> Window<S> {
    /// Begin without a position; `seek` sets it.
    pub fn new(source: S) -> Self {
        Self {
            source,
            piece: Vec::new(),
            start: 0,
            at: 0,
            end: 0,
            crc: Crc32::default(),
        }
    }

    /// Return the source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Move to `at`, and read up to `end`; the CRC-32 begins again.
    pub fn seek(&mut self, at: u64, end: u64) {
        self.at = at;
        self.end = end.max(at);
        self.crc = Crc32::default();
    }

    /// Return the offset of the next byte.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Return the CRC-32 of the bytes consumed since `seek`.
    pub fn crc(&self) -> u32 {
        self.crc.value()
    }

    /// Return the next bytes: 64 or more; less only near the end, none at the end.
    pub fn bytes(&mut self) -> Result<&[u8]> {
        self.want(HEAD_BYTES)?;
        Ok(self.loaded())
    }

    /// Load the next `size` bytes together, up to the size of a read: contiguous input inflates
    /// quicker.
    pub fn want(&mut self, size: u64) -> Result<()> {
        let left = self.end.saturating_sub(self.at);
        let least = size.min(PIECE_BYTES).min(left);
        if (self.loaded().len() as u64) >= least {
            return Ok(());
        }
        let before = self.piece.len() as u64;
        let goes_on = self
            .at
            .checked_sub(self.start)
            .is_some_and(|skip| skip <= before);
        let more = if goes_on {
            before.saturating_mul(2)
        } else {
            FIRST_PIECE_BYTES
        };
        let room = more.clamp(least, PIECE_BYTES).min(left);
        self.piece.resize(fit(room), 0);
        self.start = self.at;
        self.source
            .read_at(self.at, &mut self.piece)
            .inspect_err(|_| self.piece.clear())
    }

    /// Pass over `count` of the loaded bytes, which enter the CRC-32.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "these bytes are held, within the size of the source"
    )]
    pub fn consume(&mut self, count: usize) {
        let mut crc = std::mem::take(&mut self.crc);
        crc.update(&self.loaded()[..count]);
        self.crc = crc;
        self.at += count as u64;
    }

    /// Decode the header of the record that begins here to its form and inflated size; its data are next.
    pub fn take_header(&mut self) -> Result<(Form, usize)> {
        let bytes = self.bytes()?;
        let mut cursor = Cursor::new(bytes);
        let header = take_header(&mut cursor)?;
        let used = bytes.len().saturating_sub(cursor.rest().len());
        self.consume(used);
        Ok(header)
    }

    /// Return the bytes that were read and not consumed yet.
    fn loaded(&self) -> &[u8] {
        let left = self.end.saturating_sub(self.at);
        let rest = self
            .at
            .checked_sub(self.start)
            .and_then(|skip| self.piece.get(usize::try_from(skip).ok()?..))
            .unwrap_or_default();
        usize::try_from(left)
            .ok()
            .and_then(|left| rest.get(..left))
            .unwrap_or(rest)
    }
}
