//! Pack indices of version 2 (gitformat-pack(5)).

use crate::git::oid::{Checksum, OID_BYTES, Oid};

const MAGIC: [u8; 8] = *b"\xfftOc\0\0\0\x02";
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
