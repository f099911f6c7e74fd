//! The paths that may have to change in a tree, and the operations that change it.

pub(crate) mod entry;
pub(crate) mod order;
pub(crate) mod owners;
pub(crate) mod plan;
pub(crate) mod rows;
pub(crate) mod table;
pub(crate) mod table_rows;
pub(crate) mod tree_comparison;
