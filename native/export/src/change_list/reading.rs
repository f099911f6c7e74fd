//! A path in a list of a file system.

/// A path as a line spells it; the other fields are as in `Touched`.
pub(super) struct Reading {
    pub(super) path: Vec<u8>,
    pub(super) all_below: bool,
    pub(super) perhaps: bool,
}
