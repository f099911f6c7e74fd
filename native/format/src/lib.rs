//! The bytes of a commit: entries, manifests, git objects.
//!
//! Pure: reads no disk, no clock and no environment, and starts no thread.  Whatever comes in may
//! be hostile: a parser takes from the front, counts what it spends, and never indexes.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

pub mod budget;
pub mod cursor;
pub mod error;
pub mod git;
pub mod limits;
