//! Attr trees: names, sizes and times without content.
//!
//! Rule to keep: every directory is opened from the root without following any symlink, and all
//! that is done is done to one name in it.  A tree that is not what the records expect gives an
//! error, and never a change somewhere else.

mod attributes;
mod entry;
mod leaf_lines;
mod maker;
mod record;
mod workplace;

pub use maker::Maker;
