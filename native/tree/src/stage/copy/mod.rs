//! Stages content of this machine: from the tree, from another staged file, or from the
//! path of a content URL.
//!
//! Rules to keep: a source is opened without following a symlink below its root, and only read.
//! Staged content is proved to be the wanted one, or is removed; a copy gets its
//! time last, so that a killed run leaves nothing that looks complete.  Copies go to a separate
//! folder of the staging area, in which each entry belongs to the thread that makes it, so that
//! several threads may copy; none of them changes anything else.

mod content;
mod reuse;
mod rows;
mod source;
mod targets;

pub(super) use content::New;
pub use content::Way;
pub use reuse::{Reuse, Twin, copy_twins};
pub use rows::{Area, Ways};
pub use source::{Copies, CopyArrival, Limits, Origin};
pub(super) use targets::Targets;
