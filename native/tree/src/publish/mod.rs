//! The operations that change a tree, below one root, in rows of one kind.
//!
//! Rules to keep: no operation follows a symlink in any component.  An entry gets its attributes
//! first and its name last, by one rename.  Temporary names are made in a directory of our own,
//! never beside the target, and no operation accepts a path there.  Repeating one does no harm.

mod directories;
mod files;
mod former;
mod leaves;
mod moves;
mod row;
mod tree;
mod whole;

pub use directories::Directory;
pub use files::{File, Staged};
pub use leaves::{Leaf, Link, Remove, Symlink};
pub use moves::{Move, rename_noreplace};
pub use row::{Failure, Reason, Row};
pub use tree::{Options, Tree};
pub use whole::{Held, Whole};

pub(crate) use files::LastFolder;

pub use crate::sys::attributes::{Attributes, Mode};
