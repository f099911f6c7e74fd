//! Attr trees: names, sizes and times without content.
//!
//! Rule to keep: every directory is opened from the root without following any symlink, and each
//! operation changes one name in it.  A tree that does not match what is asked gives an error, and
//! never a change elsewhere.

mod attributes;
mod entry;
mod maker;
mod workplace;

pub use attributes::NewAttributes;
pub use entry::{NewEntry, NewKind};
pub use maker::{Maker, OwnerNumbers};
