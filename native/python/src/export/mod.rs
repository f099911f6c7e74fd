//! Snapshots as other programs read them.

pub(crate) mod attr_tree;
pub(crate) mod filelist;
pub(crate) mod image;
