//! The operations that change a tree, below one root.
//!
//! Rules to keep: no operation follows a symlink in any component.  An entry gets its attributes
//! first and its name last, by one rename.  Repeating an operation does no harm.

mod tree;

pub use tree::Tree;
