//! Entries as values and as lines (FORMAT.md, "Manifests").

pub mod attributes;
pub mod digests;
mod entry;
mod fields;
mod leader;
mod line;

pub use entry::{Body, DIRECTORY_MODE, Digest, Entry, FILE_MODE, ROOT_OWNER, SYMLINK_MODE};
pub use leader::put_link;
pub use line::{Bookmark, Leaves, RawLeaf, decode_directory, find_leaf, has_leaf, raw_leaves};
