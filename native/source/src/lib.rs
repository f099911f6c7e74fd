//! The lists that other programs make of a tree, as entries for a commit.
//!
//! Pure, as the format is: reads no disk, no clock and no environment, and starts no thread.  Lists
//! are hostile: each parser takes from the front, counts its work, and never indexes.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

pub mod entry;
mod lines;
pub mod spool;

mod line;

pub mod entry_list;

pub mod rsync;

mod json;
mod members;
mod mtree;
mod time;

pub mod text_list;

pub mod fedora;

pub mod recent;
