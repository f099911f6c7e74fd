//! The packs of a repository: read by place, written, and sent.

pub mod read;
mod recent;
pub mod sending;
pub mod writer;
