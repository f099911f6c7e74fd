//! Compares block indices with BLAKE3 of the whole file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use huai_format::content::block_index::{BYTES_OF_BLOCK, BlockHasher, BlockIndex, block_size};

/// Compute the index of a content, block by block.
fn index(content: &[u8]) -> BlockIndex {
    let size = content.len() as u64;
    let block = usize::try_from(block_size(size)).unwrap();
    let hashed = content.chunks(block).enumerate().map(|(number, bytes)| {
        let mut hasher = BlockHasher::new((number * block) as u64);
        hasher.update(bytes);
        hasher.finish()
    });
    BlockIndex::new(size, block as u64, hashed.collect()).unwrap()
}

fn content(size: usize) -> Vec<u8> {
    (0..size)
        .map(|at| (at / 7 % 251).to_le_bytes()[0])
        .collect()
}

#[test]
fn blocks_grow_with_the_file() {
    let expected = [
        (65_537, 64 << 10),
        (1 << 30, 64 << 10),
        ((1 << 30) + 1, 128 << 10),
        (8 << 30, 512 << 10),
        (16 << 30, 1 << 20),
        (1 << 40, 1 << 20),
        ((1 << 40) + 1, 2 << 20),
        (u64::MAX, 1 << 44),
    ];
    for (size, block) in expected {
        assert_eq!(block_size(size), block, "{size}");
    }
}

#[test]
fn an_index_gives_the_digest_of_the_file() {
    for size in [65_537, 131_072, 131_073, 400_000, 1 << 20] {
        let content = content(size);
        let index = index(&content);
        let digest = blake3::hash(&content).into();
        assert_eq!(index.digest(), digest, "{size}");
        let again = BlockIndex::decode(&index.encode(), size as u64, &digest).unwrap();
        assert_eq!(again, index);
    }
}

#[test]
fn an_index_of_another_file_is_refused() {
    let (one, other) = (content(200_000), vec![0; 200_000]);
    let digest = blake3::hash(&other).into();
    let bytes = index(&one).encode();
    assert!(BlockIndex::decode(&bytes, 200_000, &digest).is_err());
    let digest = blake3::hash(&one).into();
    assert!(BlockIndex::decode(&bytes, 200_000, &digest).is_ok());
    assert!(BlockIndex::decode(&bytes, 300_000, &digest).is_err());
    assert!(BlockIndex::decode(&bytes[1..], 200_000, &digest).is_err());
    assert!(BlockIndex::decode(&[], 0, &digest).is_err());
    assert!(BlockIndex::decode(&[0; BYTES_OF_BLOCK], 5, &digest).is_err());
}

#[test]
fn the_same_bytes_elsewhere_have_the_same_checksum_and_another_value() {
    let block = &content(1 << 16);
    let index = index(&[block.as_slice(), &[1], &block[1..], block].concat());
    let [first, other, last] = index.blocks() else {
        panic!("three blocks")
    };
    assert_eq!(first.checksum, last.checksum);
    assert_ne!(first.value, last.value);
    assert_ne!(first.checksum, other.checksum);
    assert_eq!(index.range(2), 131_072..196_608);
}
