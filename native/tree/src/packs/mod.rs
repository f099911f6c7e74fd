//! Reads, writes and sends the packs of a repository.

mod finish;
pub mod read;
pub mod received;
mod recent;
pub mod sending;
pub mod writer;
