//! Attr trees: names, sizes and times without content.
//!
//! Rule to keep: every directory is opened from the root without following any symlink, and each
//! operation changes one name in it.  A tree that does not match the records gives an
//! error, and never a change elsewhere.

mod attributes;
mod entry;
mod maker;
mod record;
mod workplace;

pub use maker::Maker;
