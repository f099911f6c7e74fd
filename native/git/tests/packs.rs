//! Checks that any bytes give a value or an error of this crate, within the budget.

use huai_git::budget::Budget;
use huai_git::deflate::Deflater;
use huai_git::delta::Delta;
use huai_git::error::{Error, Result};
use huai_git::inflate::Inflater;
use huai_git::object::{Kind, Object};
use huai_git::oid::{Checksum, Oid};
use huai_git::resolve::{LocalObjects, Resolved, Room, resolve};
use huai_git::window::Window;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use proptest::prelude::*;

const TEXT: &[u8] = b"a line of text, and another one";
const WORK: u64 = 1 << 22;

/// A repository of one blob, `TEXT`.
struct OneBase;

impl LocalObjects for OneBase {
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>> {
        let content = TEXT.to_vec();
        let kind = Kind::Blob;
        Ok((*oid == Oid::of(kind, TEXT)?).then_some(Object { kind, content }))
    }
}

/// Make a pack with the right checksum.
fn pack(records: &[Vec<u8>]) -> Vec<u8> {
    let count = records.len().to_be_bytes();
    let mut pack = [b"PACK\0\0\0\x02", &count[4..]].concat();
    pack.extend(records.concat());
    let mut sum = Checksum::default();
    sum.update(&pack);
    pack.extend(sum.finish());
    pack
}

/// Make a record with a size below 2048; `base` is between the header and the data.
fn record(code: u8, data: &[u8], base: &[u8]) -> Vec<u8> {
    let [low, high, ..] = data.len().to_le_bytes();
    let head = [0x80 | code << 4 | low & 15, high << 4 | low >> 4];
    [&head, base, &compress_to_vec_zlib(data, 6)].concat()
}

/// Resolve a pack whose only base outside of it may be `TEXT`.
fn resolved(pack: &[u8], room: Room) -> Result<Resolved> {
    let go_on = || false;
    resolve(pack, &mut OneBase, room, &mut Budget::new(WORK, &go_on))
}

proptest! {
    #[test]
    fn any_records(records: Vec<Vec<u8>>, held in prop::sample::select(vec![0, 100, 1 << 20])) {
        let room = Room { held, naming: 1 << 16 };
        let _ = resolved(&pack(&records), room);
        let _ = resolved(&records.concat(), room);
    }

    #[test]
    fn any_deltas(deltas: Vec<Vec<u8>>, held in prop::sample::select(vec![0, 100, 1 << 20])) {
        let oid = Oid::of(Kind::Blob, TEXT).unwrap();
        let mut records: Vec<Vec<u8>> = deltas
            .iter()
            .map(|delta| record(7, delta, oid.as_bytes()))
            .collect();
        let room = Room { held, naming: 1 << 16 };
        let _ = resolved(&pack(&records), room);
        records.insert(0, record(3, TEXT, b""));
        let _ = resolved(&pack(&records), room);
    }

    #[test]
    fn any_steps(base: Vec<u8>, steps: Vec<u8>, after in 0..100_u8) {
        let head = [base.len().to_le_bytes()[0] & 0x7f, after];
        let mut result = Vec::new();
        for delta in [steps.clone(), [&head[..], &steps].concat()] {
            if let Ok(delta) = Delta::parse(&delta) {
                let is_ok = delta.apply(&base, &mut result).is_ok();
                prop_assert!(!is_ok || result.len() == delta.size());
                prop_assert!(result.len() <= delta.size());
            }
        }
    }

    #[test]
    fn a_damaged_pack_is_refused(content: Vec<u8>, at: prop::sample::Index, bit in 0..8_u8) {
        let start = &content[..content.len().min(2000)];
        let mut pack = pack(&[record(2, start, b"")]);
        let room = Room { held: 1 << 20, naming: 1 << 20 };
        prop_assert!(resolved(&pack, room).is_ok());
        let at = at.index(pack.len());
        pack[at] ^= 1 << bit;
        let refused = matches!(resolved(&pack, room), Err(Error::Malformed { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn deflates_what_another_library_inflates(
        text in prop::collection::vec(0..4_u8, 0..3000),
        noise in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        let mut deflater = Deflater::default();
        let mut packed = Vec::new();
        for content in [&text, &noise, &[&text[..], &noise].concat()] {
            deflater.deflate(content, &mut packed).unwrap();
            let inflated = decompress_to_vec_zlib_with_limit(&packed, content.len());
            prop_assert_eq!(inflated.as_ref().ok(), Some(content));
        }
        for content in [&text, &noise] {
            deflater.deflate(content, &mut packed).unwrap();
            let theirs = compress_to_vec_zlib(content, 6).len();
            prop_assert!(packed.len() <= theirs + theirs / 10 + 64, "{} {theirs}", packed.len());
        }
    }

    #[test]
    fn inflates_as_another_library_does(
        content in prop::collection::vec(0..4_u8, 0..3000),
        level in 0..10_u8,
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        behind: Vec<u8>,
    ) {
        let mut packed = compress_to_vec_zlib(&content, level);
        if let Some((at, byte)) = damage {
            let at = at.index(packed.len());
            packed[at] = byte;
        }
        let theirs = decompress_to_vec_zlib_with_limit(&packed, content.len())
            .ok()
            .filter(|made| made.len() == content.len());
        let end = packed.len() as u64;
        packed.extend(behind);
        let mut window = Window::new(&packed[..]);
        window.seek(0, packed.len() as u64);
        let mut ours = Vec::new();
        let done = Inflater::default().inflate(&mut window, content.len(), &mut ours);
        if damage.is_none() {
            prop_assert!(done.is_ok());
            prop_assert_eq!(window.at(), end);
        }
        if done.is_ok() {
            prop_assert_eq!(theirs, Some(ours));
        } else {
            prop_assert_eq!(theirs, None);
        }
    }
}
