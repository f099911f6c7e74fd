//! The inputs that the fuzzers collected: an archive for each target.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "the inputs are files")]

use std::path::Path;

use miniz_oxide::inflate::decompress_to_vec;

/// The bytes of a gzip header, or of tar's, without a file name.
const HEAD: usize = 10;
const TAIL: usize = 8;
/// The block size of tar(5): content is padded to a multiple of it.
const BLOCK: usize = 512;

/// Call `take` with each input of the target `name`; a target without inputs is a failure.
pub(crate) fn repeat(name: &str, take: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let packed = std::fs::read(corpus.join(name).with_extension("tar.gz")).unwrap();
    let archive = decompress_to_vec(&packed[HEAD..packed.len() - TAIL]).unwrap();
    let mut rest = &archive[..];
    let mut inputs = 0;
    while rest[0] != 0 {
        let (header, after) = rest.split_at(BLOCK);
        let size = std::str::from_utf8(&header[124..135]).unwrap();
        let size = usize::from_str_radix(size, 8).unwrap();
        take(&after[..size]);
        rest = &after[size.next_multiple_of(BLOCK)..];
        inputs += 1;
    }
    assert!(inputs > 0, "{name} has no inputs");
}
