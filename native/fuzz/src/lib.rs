//! The decoders' targets, for the programs in `bin/`.

#[path = "../../format/tests/hostile/mod.rs"]
mod hostile;

use hostile::TARGETS;

/// What the target `name` does.
///
/// # Panics
///
/// If there is none, and for an input that breaks it.
pub fn take(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    target.expect("a target of this name").1(data);
}
