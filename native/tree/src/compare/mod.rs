//! Compares a downstream tree with a selection of a snapshot: a merge of two streams in tree order.
//!
//! Compares attributes only, and reports differences only.  Memory grows with the
//! largest directory, the depth and the number of hardlink groups, not with the tree.
//!
//! Findings come in tree order, except for extraneous leaves, which come after the subdirectories
//! of their directory: one of those may be wanted under the leaf's name, and that is one finding.

pub(crate) mod difference;
mod extraneous;
pub mod findings;
mod found;
pub(crate) mod local;
mod merge;
mod place;
mod records;
pub mod scope;

pub use merge::TreeComparison;
pub use place::ComparisonOptions;
