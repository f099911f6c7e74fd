//! Checks that an index returns the entries it was made of, and never those of another object.

use huai_git::index::{Index, IndexEntry, encode};
use huai_git::oid::{Checksum, OID_BYTES, Oid};
use proptest::prelude::*;

/// Make ids that sometimes share their beginnings.
fn oid() -> impl Strategy<Value = Oid> {
    (prop::sample::select(vec![0, 1, 127, 255]), any::<[u8; 2]>()).prop_map(|(first, rest)| {
        let mut bytes = [7; OID_BYTES];
        bytes[0] = first;
        bytes[OID_BYTES - 2..].copy_from_slice(&rest);
        Oid::new(bytes)
    })
}

/// Make up to 59 entries with different ids, sorted by id; some offsets need more than 31 bits.
fn places() -> impl Strategy<Value = Vec<IndexEntry>> {
    let offset = prop_oneof![0..1_u64 << 20, (1_u64 << 31) - 1..1 << 40];
    prop::collection::btree_map(oid(), offset, 0..60).prop_map(|places| {
        let numbered = places.into_iter().zip(1_u32..);
        // No two records have the same checksum.
        let of = |((oid, offset), number): ((Oid, u64), u32)| IndexEntry {
            oid,
            offset,
            crc: number.wrapping_mul(0x9E37_79B1),
        };
        numbered.map(of).collect()
    })
}

/// As gitformat-pack(5) has it, also beyond 31 bits of an offset.
#[test]
fn every_byte_of_an_index() {
    let ids = [[1; OID_BYTES], [2; OID_BYTES], [255; OID_BYTES]];
    let offsets = [(1 << 31) - 1, 1 << 31, 1 << 40];
    let places = [7, 8, 9]
        .into_iter()
        .zip(ids.into_iter().zip(offsets))
        .rev();
    let places = places.map(|(crc, (oid, offset))| IndexEntry {
        oid: Oid::new(oid),
        offset,
        crc,
    });
    let index = encode(places.collect(), &[9; OID_BYTES]).unwrap();
    let mut expected = vec![0xFF, b't', b'O', b'c', 0, 0, 0, 2];
    expected.extend((0..=255_u8).flat_map(|byte| [0, 0, 0, byte.min(2) + byte / 255]));
    expected.extend(ids.concat());
    expected.extend([0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9]);
    expected.extend([0x7F, 255, 255, 255, 0x80, 0, 0, 0, 0x80, 0, 0, 1]);
    expected.extend([0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
    expected.extend([9; OID_BYTES]);
    let mut sum = Checksum::default();
    sum.update(&expected);
    expected.extend(sum.finish());
    assert_eq!(index, expected);
}

proptest! {
    #[test]
    fn what_was_put_in_is_found(places in places(), other in oid()) {
        let bytes = encode(places.clone(), &[9; OID_BYTES]).unwrap();
        let mut index = Index::open(bytes.as_slice()).unwrap();
        index.check().unwrap();
        for (number, place) in places.iter().enumerate() {
            prop_assert_eq!(index.find(&place.oid).unwrap(), Some(*place));
            prop_assert_eq!(index.oid(number).unwrap(), place.oid);
        }
        let expected = places.iter().find(|place| place.oid == other);
        prop_assert_eq!(index.find(&other).unwrap(), expected.copied());
        let order = index.order().unwrap();
        for (number, place) in places.iter().enumerate() {
            let later = places.iter().map(|other| other.offset);
            let next = later.filter(|offset| *offset > place.offset).min();
            prop_assert_eq!(order.end(place.offset), next);
            let number_of = order.number(place.offset).unwrap();
            prop_assert_eq!(places[number_of].offset, places[number].offset);
        }
    }

    #[test]
    fn a_damaged_one_is_told_or_lacks_something(
        places in places(),
        at: prop::sample::Index,
        bit in 0..8_u8,
    ) {
        let mut bytes = encode(places.clone(), &[9; OID_BYTES]).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let Ok(mut index) = Index::open(bytes.as_slice()) else {
            return Ok(());
        };
        prop_assert!(index.check().is_err());
        for place in &places {
            if let Ok(Some(found)) = index.find(&place.oid) {
                // Either right, or the record at that offset has another checksum.
                let of_another = places.iter().filter(|other| other.oid != place.oid);
                let mut of_another = of_another.map(|other| (other.offset, other.crc));
                prop_assert!(!of_another.any(|other| other == (found.offset, found.crc)));
            }
        }
    }

    #[test]
    fn a_cut_one_is_refused(places in places(), at: prop::sample::Index) {
        let bytes = encode(places, &[9; OID_BYTES]).unwrap();
        let cut = at.index(bytes.len());
        let result = Index::open(&bytes[..cut]);
        prop_assert!(result.is_err() || result.unwrap().check().is_err());
    }
}
