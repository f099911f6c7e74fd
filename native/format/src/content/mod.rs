//! Formats for content: the block indices of large files, bundles of small ones.

pub mod block_index;
pub mod bundle;
