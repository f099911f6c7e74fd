//! Scans a tree for a commit: all of it, or the listed paths.

pub mod directory;
pub mod hardlinks;
pub mod linked;
pub mod touched;
pub mod whole_tree;
