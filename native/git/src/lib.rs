//! Git's objects, packs and pack indices as bytes (gitformat-pack(5)), and how bytes are read.
//!
//! Pure: reads no disk, no clock and no environment, and starts no thread.  Any input may be
//! hostile: a parser takes from the front, counts its work, and never indexes.  A group of
//! modules uses those above it here, never those below.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

pub mod budget;
pub mod bug;
pub mod crc;
pub mod cursor;
pub mod error;
pub mod find;
pub mod limits;

pub mod connected;
pub mod deflate;
pub mod delta;
pub mod deltify;
pub mod index;
pub mod inflate;
pub mod object;
pub mod oid;
pub mod read;
pub mod records;
pub mod resolve;
pub mod send;
pub mod tree;
pub mod window;
pub mod write;
