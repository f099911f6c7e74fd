//! The bytes of a commit: entries, manifests, snapshots.
//!
//! Pure: reads no disk, no clock and no environment, and starts no thread.  Any input may be
//! hostile: a parser takes from the front, counts its work, and never indexes.  A group of
//! modules uses those above it here, never those below.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

pub mod limits;

pub mod escape;
pub mod path;
pub mod shared;

pub mod entries;

pub mod snapshots;

pub mod write;

pub mod amend;

pub mod diff;

pub mod walks;

pub mod search;

pub mod content;
pub mod proof;
