//! The operations that change a tree, below one root, in rows of one kind.
//!
//! Rules to keep: no operation follows a symlink in any component.  An entry gets its attributes
//! first and its name last, by one rename.  Temporary names are made in a private directory,
//! never next to the target, and no operation accepts a path there.  Repeating one does no harm.

mod directories;
mod durable;
mod files;
mod former;
mod leaves;
mod moves;
mod row;
mod tree;
mod whole;

pub use directories::WantedDirectory;
pub use files::{PublishedFile, Staged};
pub use leaves::{Leaf, Link, Remove, Symlink};
pub use moves::{DirectoryMove, rename_noreplace};
pub use row::{FailureReason, OperationFailure, RowResult};
pub use tree::{Tree, TreeOptions};
pub use whole::{StagedDirectory, WholeDirectory};

pub(crate) use files::LastFolder;

pub use huai_sys::attributes::{Attributes, Mode};
