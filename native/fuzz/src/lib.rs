//! The targets of both crates, for the programs in `bin/`.

#[path = "../../tree/tests/hostile/mod.rs"]
mod disk;
#[path = "../../plan/tests/hostile/mod.rs"]
mod hostile;

/// Run the target `name` on `data`.
///
/// # Panics
///
/// If the name is unknown, and for an input that breaks the target.
pub fn run_target(name: &str, data: &[u8]) {
    let mut targets = hostile::TARGETS.iter().chain(&disk::TARGETS);
    let target = targets.find(|(target_name, _)| *target_name == name);
    target.expect("a target of this name").1(data);
}
