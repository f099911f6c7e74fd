//! Splits a pack into records: whole objects, and deltas with their bases.
//!
//! Rule: nothing in a pack is trusted; sizes are checked against limits before, and against the
//! data after inflating.

use crate::budget::Budget;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::inflate::Inflater;
use crate::limits::PACK_OBJECTS;
use crate::object::{Form, Kind};
use crate::oid::{Checksum, OID_BYTES, Oid};
use crate::window::{Source, Window};

const MAGIC: [u8; 8] = *b"PACK\0\0\0\x02";
/// The length of a pack's header.
pub const HEADER_BYTES: u64 = 12;
const CHECKSUM_BYTES: u64 = OID_BYTES as u64;
/// The shortest record: a byte of header, and zlib's shortest stream.
const RECORD_BYTES: u64 = 9;
/// The place of an error about the pack as a whole.
pub(crate) const REPLY: &str = "the upstream's reply";

/// Return the header of a pack with this number of objects.
pub fn header(objects: u32) -> Vec<u8> {
    [MAGIC.as_slice(), &objects.to_be_bytes()].concat()
}

/// The base of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// No base: a whole object.
    Whole(Kind),
    /// An earlier record, by number.
    Record(usize),
    /// An object, by id.
    Named(Oid),
}

/// A record of a pack; positions are offsets in the pack.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// The start of the record.
    pub offset: u64,
    /// The start of its compressed bytes.
    data: u64,
    /// The start of the next record.
    end: u64,
    /// The inflated size; for a delta, that of the delta itself.
    pub size: usize,
    /// The CRC-32 of all its bytes.
    pub crc: u32,
    /// The base.
    pub base: Base,
}

/// The records of a pack, read from first to last, and then again by number.
pub struct Records<S> {
    window: Window<S>,
    inflater: Inflater,
    found: Vec<Record>,
    count: usize,
    end: u64,
}

impl<S: Source> Records<S> {
    /// Read all of a pack to check its header and checksum, and begin before the first record.  Fails if these are
    /// wrong, or too many records are stated.
    pub fn open(source: S, budget: &mut Budget<'_>) -> Result<Self> {
        let end = source.size().saturating_sub(CHECKSUM_BYTES);
        let mut window = Window::new(source);
        let count = check(&mut window, end, budget).map_err(|error| error.within(REPLY))?;
        window.seek(HEADER_BYTES, end);
        Ok(Self {
            window,
            inflater: Inflater::default(),
            found: Vec::new(),
            count,
            end,
        })
    }

    /// Return the records read so far.
    pub fn records(&self) -> &[Record] {
        &self.found
    }

    /// Read the next record, with its inflated bytes in `content`; `None` after the last one, which must end the
    /// pack.  Its base must be an earlier record, or an id.  Spends `budget`.
    pub fn next(
        &mut self,
        budget: &mut Budget<'_>,
        content: &mut Vec<u8>,
    ) -> Result<Option<Record>> {
        let offset = self.found.last().map_or(HEADER_BYTES, |last| last.end);
        if self.found.len() == self.count {
            if offset != self.end {
                let error = Error::new("a pack with more bytes than objects");
                return Err(error.within(record_place(offset)));
            }
            return Ok(None);
        }
        self.window.seek(offset, self.end);
        let (base, size) = self
            .head(offset)
            .map_err(|error| error.within(record_place(offset)))?;
        budget
            .spend(size as u64)
            .map_err(|error| error.within(REPLY))?;
        let data = self.window.at();
        self.inflater
            .inflate(&mut self.window, size, content)
            .map_err(|error| error.within(record_place(data)))?;
        let record = Record {
            offset,
            data,
            end: self.window.at(),
            size,
            crc: self.window.crc(),
            base,
        };
        self.found.push(record);
        Ok(Some(record))
    }

    /// Inflate `record` again, into `content`; spends `budget`.
    pub fn inflate(
        &mut self,
        record: &Record,
        budget: &mut Budget<'_>,
        content: &mut Vec<u8>,
    ) -> Result<()> {
        budget
            .spend(record.size as u64)
            .map_err(|error| error.within(REPLY))?;
        self.window.seek(record.data, record.end);
        self.inflater
            .inflate(&mut self.window, record.size, content)
            .map_err(|error| error.within(record_place(record.data)))
    }

    /// Decode the header of the record at `offset` to its base and inflated size; the window is after it then.  Fails
    /// if no earlier record begins at the base.
    fn head(&mut self, offset: u64) -> Result<(Base, usize)> {
        let (form, size) = self.window.take_header()?;
        let base = match form {
            Form::Whole(kind) => Base::Whole(kind),
            Form::OnName(oid) => Base::Named(oid),
            Form::OnOffset(distance) => offset
                .checked_sub(distance)
                .and_then(|start| {
                    self.found
                        .binary_search_by_key(&start, |record| record.offset)
                        .ok()
                })
                .map(Base::Record)
                .ok_or_else(|| Error::new("a delta against a place where no object begins"))?,
        };
        Ok((base, size))
    }
}

/// Check the header and checksum of a pack; returns the number of records, which is within limits.
fn check<S: Source>(window: &mut Window<S>, end: u64, budget: &Budget<'_>) -> Result<usize> {
    let room = end
        .checked_sub(HEADER_BYTES)
        .ok_or_else(|| Error::new("not a complete pack"))?;
    window.seek(0, end);
    let mut head = Cursor::new(window.bytes()?);
    let magic = head.array();
    let count = head
        .u32()
        .filter(|_| magic == Some(MAGIC))
        .ok_or_else(|| Error::new("not a pack of version 2"))?;
    let most = room / RECORD_BYTES;
    if u64::from(count) > most.min(u64::from(PACK_OBJECTS)) {
        return Err(Error::new(format!("a pack cannot hold {count} objects")));
    }
    let mut checksum = Checksum::default();
    loop {
        budget.check()?;
        let bytes = window.bytes()?;
        if bytes.is_empty() {
            break;
        }
        checksum.update(bytes);
        let size = bytes.len();
        window.consume(size);
    }
    let mut stored = [0; OID_BYTES];
    window.source().read_at(end, &mut stored)?;
    if checksum.finish() != stored {
        return Err(Error::new("the pack's checksum is wrong"));
    }
    Ok(count as usize)
}

/// Return the place of an error about one record.
pub(crate) fn record_place(offset: u64) -> String {
    format!("byte {offset} of the pack")
}
