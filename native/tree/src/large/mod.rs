//! Large files, assembled from local and fetched blocks.

pub mod assemble;
mod rolling;
mod shifted;
