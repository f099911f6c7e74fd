//! The inputs that the fuzzers kept, each again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "the inputs are files")]

mod hostile;

use std::fs;
use std::path::Path;

#[test]
fn every_kept_input_gives_a_value_or_a_refusal() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for (name, take) in hostile::TARGETS {
        let mut inputs = 0;
        for file in fs::read_dir(corpus.join(name)).unwrap() {
            take(&fs::read(file.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{name} has no inputs");
    }
}
