//! Reads, writes and sends the packs of a repository.

pub mod read;
mod recent;
pub mod sending;
pub mod writer;
