//! Takes a pack apart into records: whole objects, and deltas that name their base.
//!
//! Rule: nothing in a pack is believed; sizes are checked against limits before, and against the
//! data after inflating.

use crate::budget::Budget;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::git::inflate::Inflater;
use crate::git::object::{Form, Kind};
use crate::git::oid::{Checksum, OID_BYTES, Oid};
use crate::git::window::{Source, Window};
use crate::limits::PACK_OBJECTS;

const MAGIC: [u8; 8] = *b"PACK\0\0\0\x02";
/// What stands before the first record.
pub const HEADER_BYTES: u64 = 12;
const CHECKSUM_BYTES: u64 = OID_BYTES as u64;
/// No record is shorter: a byte of header, and zlib's shortest stream.
const RECORD_BYTES: u64 = 9;
/// The place of an error that is about the pack as a whole.
pub(crate) const REPLY: &str = "the upstream's reply";

/// The first bytes of a pack of so many objects.
pub fn header(objects: u32) -> Vec<u8> {
    [MAGIC.as_slice(), &objects.to_be_bytes()].concat()
}

/// What a record is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Nothing: it is a whole object.
    Whole(Kind),
    /// An earlier record, by its number.
    Record(usize),
    /// An object, by its id.
    Named(Oid),
}

/// One object of a pack, as it stands there.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Where it begins.
    pub offset: u64,
    /// Where the compressed bytes begin.
    data: u64,
    /// Where the next one begins.
    end: u64,
    /// Inflated; of the delta itself if it is one.
    pub size: usize,
    /// CRC-32 of all its bytes in the pack.
    pub crc: u32,
    /// What it is made from.
    pub base: Base,
}

/// The records of a pack, read from first to last, and then once more by number.
pub struct Records<S> {
    window: Window<S>,
    inflater: Inflater,
    found: Vec<Record>,
    count: usize,
    end: u64,
}

impl<S: Source> Records<S> {
    /// Of a pack whose header and checksum are right.
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

    /// The records read so far.
    pub fn found(&self) -> &[Record] {
        &self.found
    }

    /// How many there are in all.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The next record, with its bytes in `content`; they fill the pack to the last byte.
    pub fn next(
        &mut self,
        budget: &mut Budget<'_>,
        content: &mut Vec<u8>,
    ) -> Result<Option<Record>> {
        let offset = self.found.last().map_or(HEADER_BYTES, |last| last.end);
        if self.found.len() == self.count {
            if offset != self.end {
                let error = Error::new("a pack with more bytes than objects");
                return Err(error.within(place(offset)));
            }
            return Ok(None);
        }
        self.window.seek(offset, self.end);
        let (base, size) = self
            .head(offset)
            .map_err(|error| error.within(place(offset)))?;
        budget
            .spend(size as u64)
            .map_err(|error| error.within(REPLY))?;
        let data = self.window.at();
        self.inflater
            .inflate(&mut self.window, size, content)
            .map_err(|error| error.within(place(data)))?;
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

    /// Once more what `next` gave with `record`.
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
            .map_err(|error| error.within(place(record.data)))
    }

    /// What the record at `offset` is made from, and its size; the window stands behind its head.
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

/// How many records there are, in a pack whose header and checksum are right.
fn check<S: Source>(window: &mut Window<S>, end: u64, budget: &Budget<'_>) -> Result<usize> {
    let room = end
        .checked_sub(HEADER_BYTES)
        .ok_or_else(|| Error::new("no pack, or less than one"))?;
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
    let mut told = [0; OID_BYTES];
    window.source().read_at(end, &mut told)?;
    if checksum.finish() != told {
        return Err(Error::new("the pack's checksum is wrong"));
    }
    Ok(count as usize)
}

/// The place of an error that is about one record.
pub(crate) fn place(offset: u64) -> String {
    format!("byte {offset} of the pack")
}
