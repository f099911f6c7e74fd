//! Reads a pack from one place to another, with a bounded piece of it in memory.

use crate::bug::fit;
use crate::crc::Crc32;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::git::object::{Form, take_header};

/// Where the bytes of a pack or of an index come from.
pub trait Source {
    /// How many there are.
    fn size(&self) -> u64;

    /// Fills `room` with what stands at `offset`; a source that ends early is an error.
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
        let found = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..)?.get(..room.len()))
            .ok_or_else(|| Error::new("a pack that ends early"))?;
        room.copy_from_slice(found);
        Ok(())
    }
}

/// Of a single object; twice as much each time that reading goes on where it was.
const FIRST_PIECE_BYTES: u64 = 4 << 10;
const PIECE_BYTES: u64 = 256 << 10;
/// So many are there at once, unless the end comes first: no header is longer.
const HEAD_BYTES: u64 = 64;

/// A place in a pack.
pub struct Window<S> {
    source: S,
    piece: Vec<u8>,
    start: u64,
    at: u64,
    end: u64,
    crc: Crc32,
}

impl<S: Source> Window<S> {
    /// At the beginning; `seek` says where to read.
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

    /// Where the bytes come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Go to `at`, and read to `end` at most.
    pub fn seek(&mut self, at: u64, end: u64) {
        self.at = at;
        self.end = end.max(at);
        self.crc = Crc32::default();
    }

    /// Where the next byte stands.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The CRC-32 of what was consumed since `seek`.
    pub fn crc(&self) -> u32 {
        self.crc.value()
    }

    /// What comes next, 64 bytes or more; less only where the end is near, none at the end.
    pub fn bytes(&mut self) -> Result<&[u8]> {
        self.want(HEAD_BYTES)?;
        Ok(self.held())
    }

    /// Have the next `size` bytes in one piece, as far as a piece goes: what comes in one piece
    /// inflates quicker.
    pub fn want(&mut self, size: u64) -> Result<()> {
        let left = self.end.saturating_sub(self.at);
        let least = size.min(PIECE_BYTES).min(left);
        if (self.held().len() as u64) >= least {
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

    /// Go over the next `count` bytes, which `bytes` has shown.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "these bytes are held, within the size of the source"
    )]
    pub fn consume(&mut self, count: usize) {
        let mut crc = std::mem::take(&mut self.crc);
        crc.update(&self.held()[..count]);
        self.crc = crc;
        self.at += count as u64;
    }

    /// What the record that begins here holds, and its inflated size; then its data are next.
    pub fn take_header(&mut self) -> Result<(Form, usize)> {
        let bytes = self.bytes()?;
        let mut cursor = Cursor::new(bytes);
        let found = take_header(&mut cursor)?;
        let used = bytes.len().saturating_sub(cursor.rest().len());
        self.consume(used);
        Ok(found)
    }

    fn held(&self) -> &[u8] {
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
