//! The rules of clients and servers on data: filters, globs, the order of publishing, the plan.
//!
//! Pure, as the format is: reads no disk, no clock and no environment, and starts no thread.  A
//! group of modules uses those above it here, never those below.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod wildmatch;

pub mod pattern;

pub mod filter;
pub mod order;

pub mod missing;

pub mod selection;

pub mod requests;

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a table refers to its own rows and text"
)]
pub mod candidates;
