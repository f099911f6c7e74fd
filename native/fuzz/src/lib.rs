//! The targets of both crates, for the programs in `bin/`.

#[path = "../../tree/tests/hostile/mod.rs"]
mod disk;
#[path = "../../format/tests/hostile/mod.rs"]
mod hostile;

/// Give `data` to the target `name`.
///
/// # Panics
///
/// If there is none, and for an input that breaks it.
pub fn take(name: &str, data: &[u8]) {
    let mut targets = hostile::TARGETS.iter().chain(&disk::TARGETS);
    let target = targets.find(|(known, _)| *known == name);
    target.expect("a target of this name").1(data);
}
