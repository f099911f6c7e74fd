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

pub mod path;
pub mod shared;

pub mod attributes;
pub mod block_index;
pub mod bundle;
pub mod digests;
pub mod entry;
pub mod escape;
mod fields;
pub mod leader;
pub mod line;

pub mod manifest;

pub mod objects;
pub mod own_directory;
pub mod piece;

mod cut;
pub mod layout;
mod radix;
pub mod totals;

pub mod listing_hash;
pub mod signature;

pub mod entry_limit;
pub mod level;
pub mod snapshot;

pub mod lookup;

pub mod digested;
pub mod found_digests;
pub mod undigested;

pub mod count;
pub mod diff;
pub mod forest;
pub mod hardlink;
mod likeness;
pub mod listing_diff;
pub mod moves;
pub mod runs;

pub mod amend;
pub mod columns;
