//! Pack indices of version 2 (gitformat-pack(5)): made, checked, looked up.

use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::git::oid::{Checksum, OID_BYTES, Oid};

const MAGIC: [u8; 8] = *b"\xfftOc\0\0\0\x02";
/// Where the table of ids begins: behind 256 numbers.
const OIDS: usize = MAGIC.len() + 256 * 4;
/// The highest bit of an offset says that the offset stands in the table of large ones.
const LARGE: u32 = 1 << 31;

/// Where an object stands in its pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which object.
    pub oid: Oid,
    /// Where its record begins.
    pub offset: u64,
    /// CRC-32 of the record.
    pub crc: u32,
}

/// The index of the pack that ends with `checksum`.
pub fn encode(mut places: Vec<Place>, checksum: &[u8; OID_BYTES]) -> Vec<u8> {
    places.sort_unstable_by_key(|place| place.oid);
    let mut index = Vec::from(MAGIC);
    for byte in 0..=u8::MAX {
        let upto = places.partition_point(|place| place.oid.first() <= byte);
        index.extend(u32::try_from(upto).unwrap_or(u32::MAX).to_be_bytes());
    }
    for place in &places {
        index.extend(place.oid.as_bytes());
    }
    for place in &places {
        index.extend(place.crc.to_be_bytes());
    }
    let mut large = Vec::new();
    let mut number = LARGE;
    for place in &places {
        let small = u32::try_from(place.offset).ok().filter(|at| *at < LARGE);
        index.extend(small.unwrap_or(number).to_be_bytes());
        if small.is_none() {
            large.extend(place.offset.to_be_bytes());
            number = number.saturating_add(1);
        }
    }
    index.extend(large);
    index.extend(checksum);
    let mut sum = Checksum::default();
    sum.update(&index);
    index.extend(sum.finish());
    index
}

/// An index in memory, whose tables are as long as they have to be.
#[derive(Debug)]
pub struct Index {
    bytes: Vec<u8>,
    /// Where each table begins.
    crcs: usize,
    offsets: usize,
    large: usize,
    end: usize,
}

impl Index {
    /// An index whose checksum is right.
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        Self::tables(bytes).ok_or_else(|| Error::new("a damaged pack index"))
    }

    /// Where an object stands, if it is in the pack.
    pub fn find(&self, oid: &Oid) -> Option<Place> {
        let byte = usize::from(oid.first());
        let upto = |byte: usize| number(&self.bytes, MAGIC.len(), byte);
        let mut low = byte.checked_sub(1).map_or(Some(0), upto)?;
        let mut high = upto(byte)?;
        while low < high {
            let middle = low.midpoint(high);
            match self.oid(middle)?.cmp(oid) {
                Ordering::Less => low = middle.saturating_add(1),
                Ordering::Greater => high = middle,
                Ordering::Equal => return self.place(middle),
            }
        }
        None
    }

    /// The id of the object with this number.
    pub fn oid(&self, at: usize) -> Option<Oid> {
        let table = self.bytes.get(..self.crcs)?;
        Oid::parse(part(table, OIDS, at, OID_BYTES)?)
    }

    /// Where the records stand, one after the other.
    pub fn order(&self) -> Order {
        let mut records: Vec<(u64, usize)> = (0..)
            .map_while(|at| Some((self.place(at)?.offset, at)))
            .collect();
        records.sort_unstable();
        Order(records)
    }

    /// None if they do not fill the file, or its checksum is another.
    fn tables(bytes: Vec<u8>) -> Option<Self> {
        let end = bytes.len().checked_sub(2 * OID_BYTES)?;
        let count = number(&bytes, MAGIC.len(), 255)?;
        let crcs = OIDS.checked_add(count.checked_mul(OID_BYTES)?)?;
        let offsets = crcs.checked_add(count.checked_mul(4)?)?;
        let large = offsets.checked_add(count.checked_mul(4)?)?;
        let left = end.checked_sub(large)?;
        let (body, told) = bytes.split_last_chunk::<OID_BYTES>()?;
        let mut sum = Checksum::default();
        sum.update(body);
        let sound = bytes.starts_with(&MAGIC) && left % 8 == 0 && sum.finish() == *told;
        sound.then_some(Self {
            bytes,
            crcs,
            offsets,
            large,
            end,
        })
    }

    fn place(&self, at: usize) -> Option<Place> {
        let crc = Cursor::new(part(&self.bytes, self.crcs, at, 4)?).u32()?;
        let offset = Cursor::new(part(&self.bytes, self.offsets, at, 4)?).u32()?;
        let offset = match offset.checked_sub(LARGE) {
            None => u64::from(offset),
            Some(large) => {
                let table = self.bytes.get(..self.end)?;
                Cursor::new(part(table, self.large, large as usize, 8)?).u64()?
            }
        };
        let oid = self.oid(at)?;
        Some(Place { oid, offset, crc })
    }
}

/// The records of a pack in the order in which they stand there.
#[derive(Debug)]
pub struct Order(Vec<(u64, usize)>);

impl Order {
    /// Where the record ends that begins at `offset`; None for the last one.
    pub fn end(&self, offset: u64) -> Option<u64> {
        let next = self.0.partition_point(|(start, _)| *start <= offset);
        self.0.get(next).map(|(start, _)| *start)
    }

    /// Which object the record at `offset` is, by its number in the index.
    pub fn number(&self, offset: u64) -> Option<usize> {
        let found = self.0.binary_search_by_key(&offset, |(start, _)| *start);
        self.0.get(found.ok()?).map(|(_, number)| *number)
    }
}

/// The value number `at` of a table of values of four bytes.
fn number(bytes: &[u8], table: usize, at: usize) -> Option<usize> {
    let value = Cursor::new(part(bytes, table, at, 4)?).u32()?;
    usize::try_from(value).ok()
}

/// The value number `at` of a table.
fn part(bytes: &[u8], table: usize, at: usize, size: usize) -> Option<&[u8]> {
    let start = table.checked_add(at.checked_mul(size)?)?;
    bytes.get(start..)?.get(..size)
}
