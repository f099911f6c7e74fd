//! Writes the git objects of a snapshot.

mod cut;
mod layout;
mod radix;
mod totals;

pub(crate) use cut::{begins_piece, is_file};
pub use layout::{Layout, ListingText};
pub(crate) use totals::decimal;
pub use totals::{Counts, Totals};
