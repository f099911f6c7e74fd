//! Staging content that is on this machine: from the tree, from another staged file, or from the
//! path of a content URL.
//!
//! Rules to keep: a source is opened without following a symlink below its root, and only read.
//! What is staged is known to be the content that is wanted, or is removed again; a copy gets its
//! time last, so that a killed run leaves nothing that looks whole.  Copies go to a folder of the
//! staging area that is theirs alone: nothing there is anybody's but the one that makes it, so that
//! several threads may copy; none of them changes anything else.

mod content;
mod reuse;
mod rows;
mod source;
mod targets;

pub use content::Way;
pub use reuse::{Reuse, Staged, copy_twins};
pub use rows::{Area, Ways};
pub use source::{Arrival, Copies, Limits, Origin};
