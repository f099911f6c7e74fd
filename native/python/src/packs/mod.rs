//! Git's objects and packs, and stores of objects that Python lends.

pub(crate) mod git_tree;
pub(crate) mod lent;
pub(crate) mod read;
pub(crate) mod received;
pub(crate) mod writer;
