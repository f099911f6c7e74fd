//! Repeats the inputs that the fuzzers collected.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../plan/tests/corpus/mod.rs"]
mod corpus;
mod hostile;

#[test]
fn every_kept_input_gives_a_value_or_a_refusal() {
    for (name, take) in hostile::TARGETS {
        corpus::repeat(name, take);
    }
}
