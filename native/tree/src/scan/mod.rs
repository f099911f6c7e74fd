//! A tree as a commit reads it: as a whole, or at the paths that a list names.

pub mod directory;
pub mod hardlinks;
pub mod linked;
pub mod touched;
pub mod whole_tree;
