//! Compares two snapshots, and finds moved directories.

mod columns;
mod comparison;
mod count;
mod forest;
mod likeness;
mod listing_diff;
mod moves;
mod runs;

pub use columns::{Columns, Role};
pub use comparison::Comparison;
pub use count::count;
pub use listing_diff::{ListingPair, Sink};
pub use moves::Move;
