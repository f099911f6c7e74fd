//! Pack indices of version 2 (gitformat-pack(5)): written, checked, searched.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::oid::{Checksum, OID_BYTES, Oid};
use crate::window::Source;

const MAGIC: [u8; 8] = *b"\xfftOc\0\0\0\x02";
/// The number of values of a byte.
const BYTES: usize = 256;
/// The length of the header with the fan-out table: a number for each value of a byte.
const HEAD: usize = MAGIC.len() + BYTES * 4;
/// The offset of the table of ids.
const OIDS: u64 = HEAD as u64;
/// The length of the two checksums at the end: of the pack, and of the index.
const CHECKSUMS: u64 = 2 * OID_BYTES as u64;
/// The highest bit of an offset: the offset is in the table of large ones.
const LARGE: u32 = 1 << 31;

/// An entry of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// The id of the object.
    pub oid: Oid,
    /// The offset of its record in the pack.
    pub offset: u64,
    /// CRC-32 of the record.
    pub crc: u32,
}

/// Encode the index of the pack with the checksum `pack_checksum`; sorts the entries by id, and
/// fails only with `Bug`, for 2^32 of them.
pub fn encode(mut entries: Vec<IndexEntry>, pack_checksum: &[u8; OID_BYTES]) -> Result<Vec<u8>> {
    entries.sort_unstable_by_key(|entry| entry.oid);
    let mut index = Vec::from(MAGIC);
    for byte in 0..=u8::MAX {
        let upto = entries.partition_point(|entry| entry.oid.first() <= byte);
        let upto = u32::try_from(upto).map_err(|_| Error::bug("an index of 2^32 objects"))?;
        index.extend(upto.to_be_bytes());
    }
    for entry in &entries {
        index.extend(entry.oid.as_bytes());
    }
    for entry in &entries {
        index.extend(entry.crc.to_be_bytes());
    }
    let mut large = Vec::new();
    let mut number = LARGE;
    for entry in &entries {
        let small = u32::try_from(entry.offset).ok().filter(|at| *at < LARGE);
        index.extend(small.unwrap_or(number).to_be_bytes());
        if small.is_none() {
            large.extend(entry.offset.to_be_bytes());
            let next = number.checked_add(1);
            number = next.ok_or_else(|| Error::bug("an index of 2^31 large offsets"))?;
        }
    }
    index.extend(large);
    index.extend(pack_checksum);
    let mut sum = Checksum::default();
    sum.update(&index);
    index.extend(sum.finish());
    Ok(index)
}

/// The bytes that are read at a time for the checksum.
const BLOCK: usize = 64 << 10;

/// An index that is read on demand, because few entries of a large one are wanted at a time.
#[derive(Debug)]
pub struct Index<S> {
    source: S,
    /// The number of ids that begin with each byte or a lower one.
    upto: Vec<usize>,
    /// The rows by the first byte of their ids, once one of them was searched.
    rows: Vec<Option<Rows>>,
    /// The offsets of the other tables.
    crcs: u64,
    offsets: u64,
    large: u64,
    end: u64,
}

/// The part of the tables for ids with the same first byte.
#[derive(Debug, Clone)]
struct Rows {
    ids: Vec<Oid>,
    /// Four bytes each.
    crcs: Vec<u8>,
    offsets: Vec<u8>,
}

impl<S: Source> Index<S> {
    /// Open an index; fails if its header is damaged or its tables do not fill `source`.  Their
    /// content is checked as far as possible when it is read; `check` reads all of it.
    pub fn open(source: S) -> Result<Self> {
        let size = source.size();
        if size < OIDS + CHECKSUMS {
            return Err(damaged());
        }
        let mut head = [0; HEAD];
        source.read_at(0, &mut head)?;
        Self::with_tables(source, &head).ok_or_else(damaged)
    }

    /// Read the whole index; fails if its checksum is wrong.
    pub fn check(&self) -> Result<()> {
        let end = self.source.size().saturating_sub(OID_BYTES as u64);
        let mut sum = Checksum::default();
        let mut at = 0;
        while at < end {
            let left = end.saturating_sub(at);
            let block = read(&self.source, at, left.min(BLOCK as u64))?;
            sum.update(&block);
            at = at.saturating_add(block.len() as u64);
        }
        let stored = read(&self.source, end, OID_BYTES as u64)?;
        if sum.finish() == *stored {
            Ok(())
        } else {
            Err(damaged())
        }
    }

    /// Return the entry of an object; `None` if the pack lacks it.  Keeps in memory all rows with
    /// the same first byte.
    pub fn find(&mut self, oid: &Oid) -> Result<Option<IndexEntry>> {
        let rows = self.rows(oid.first())?;
        let Ok(number) = rows.ids.binary_search(oid) else {
            return Ok(None);
        };
        let (crc, offset) = (
            number_at(&rows.crcs, number)?,
            number_at(&rows.offsets, number)?,
        );
        let (oid, offset) = (*oid, self.offset(offset)?);
        Ok(Some(IndexEntry { oid, offset, crc }))
    }

    /// Return the id at a position, from 0, among the sorted ids; the caller must know that it is
    /// below their number.
    pub fn oid(&self, number: usize) -> Result<Oid> {
        let at = value_at(OIDS, number, OID_BYTES)?;
        Oid::parse(&read(&self.source, at, OID_BYTES as u64)?).ok_or_else(damaged)
    }

    /// Read the offsets of all records, and return them in pack order.
    pub fn order(&self) -> Result<RecordOrder> {
        let table = read(
            &self.source,
            self.offsets,
            self.large.saturating_sub(self.offsets),
        )?;
        let mut offsets = Cursor::new(&table);
        let mut records = Vec::with_capacity(table.len() / 4);
        while let Some(offset) = offsets.u32() {
            records.push((self.offset(offset)?, records.len()));
        }
        records.sort_unstable();
        Ok(RecordOrder(records))
    }

    /// Compute the offsets of the tables; `None` if they do not fill the file, or its header is
    /// damaged.
    fn with_tables(source: S, head: &[u8]) -> Option<Self> {
        let mut counts = Cursor::new(head.strip_prefix(&MAGIC)?);
        let counts = std::iter::from_fn(|| usize::try_from(counts.u32()?).ok());
        let upto: Vec<usize> = counts.collect();
        let count = *upto.last()? as u64;
        let crcs = OIDS.checked_add(count.checked_mul(OID_BYTES as u64)?)?;
        let offsets = crcs.checked_add(count.checked_mul(4)?)?;
        let large = offsets.checked_add(count.checked_mul(4)?)?;
        let end = source.size().checked_sub(CHECKSUMS)?;
        let left = end.checked_sub(large)?;
        let sound = upto.len() == BYTES && upto.is_sorted() && left % 8 == 0;
        sound.then(|| Self {
            source,
            upto,
            rows: vec![None; BYTES],
            crcs,
            offsets,
            large,
            end,
        })
    }

    /// Return the rows whose ids begin with `byte`, which are kept.
    fn rows(&mut self, byte: u8) -> Result<&Rows> {
        let upto = |byte: usize| self.upto.get(byte).copied();
        let number = usize::from(byte);
        let before = number.checked_sub(1).map_or(Some(0), upto);
        let (Some(before), Some(end), Some(slot)) =
            (before, upto(number), self.rows.get_mut(number))
        else {
            return Err(damaged());
        };
        if slot.is_none() {
            let source = &self.source;
            let table = |start| read_rows(source, start, before..end, 4);
            *slot = Some(Rows {
                ids: read_ids(source, before..end, byte)?,
                crcs: table(self.crcs)?,
                offsets: table(self.offsets)?,
            });
        }
        slot.as_ref().ok_or_else(damaged)
    }

    /// Return the offset for a value of the table of offsets, which may refer to that of large ones.
    fn offset(&self, value: u32) -> Result<u64> {
        let Some(large) = value.checked_sub(LARGE) else {
            return Ok(u64::from(value));
        };
        let at = value_at(self.large, large as usize, 8)?;
        if at >= self.end {
            return Err(damaged());
        }
        let bytes = read(&self.source, at, 8)?;
        Cursor::new(&bytes).u64().ok_or_else(damaged)
    }
}

/// The records of a pack in pack order.
#[derive(Debug)]
pub struct RecordOrder(Vec<(u64, usize)>);

impl RecordOrder {
    /// Return the end of the record at `offset`; `None` for the last one.
    pub fn end(&self, offset: u64) -> Option<u64> {
        let next = self.0.partition_point(|(start, _)| *start <= offset);
        self.0.get(next).map(|(start, _)| *start)
    }

    /// Return the position among the sorted ids of the object at `offset`; `None` if no object
    /// begins there.
    pub fn number(&self, offset: u64) -> Option<usize> {
        let position = self.0.binary_search_by_key(&offset, |(start, _)| *start);
        self.0.get(position.ok()?).map(|(_, number)| *number)
    }
}

/// Read the ids with these numbers; fails unless they are sorted, and all begin with `byte`.
fn read_ids(source: &impl Source, numbers: Range<usize>, byte: u8) -> Result<Vec<Oid>> {
    let table = read_rows(source, OIDS, numbers, OID_BYTES)?;
    let ids: Vec<Oid> = table
        .chunks_exact(OID_BYTES)
        .filter_map(Oid::parse)
        .collect();
    let sound = ids.is_sorted_by(|one, other| one < other);
    let sound = sound && ids.iter().all(|oid| oid.first() == byte);
    if sound { Ok(ids) } else { Err(damaged()) }
}

/// Read these values of `size` bytes of the table that begins at `table`.
fn read_rows(
    source: &impl Source,
    table: u64,
    numbers: Range<usize>,
    size: usize,
) -> Result<Vec<u8>> {
    let start = value_at(table, numbers.start, size)?;
    read(
        source,
        start,
        value_at(table, numbers.end, size)?.saturating_sub(start),
    )
}

/// Return the big-endian number of four bytes at a position of `table`.
fn number_at(table: &[u8], number: usize) -> Result<u32> {
    let bytes = table.chunks_exact(4).nth(number);
    bytes
        .and_then(|bytes| Cursor::new(bytes).u32())
        .ok_or_else(damaged)
}

fn read(source: &impl Source, at: u64, size: u64) -> Result<Vec<u8>> {
    let mut room = vec![0; usize::try_from(size).map_err(|_| damaged())?];
    source.read_at(at, &mut room)?;
    Ok(room)
}

/// Return the offset of the value `number` of a table that begins at `table`.
fn value_at(table: u64, number: usize, size: usize) -> Result<u64> {
    let distance = (number as u64).checked_mul(size as u64);
    distance
        .and_then(|distance| table.checked_add(distance))
        .ok_or_else(damaged)
}

fn damaged() -> Error {
    Error::new("a damaged pack index")
}
