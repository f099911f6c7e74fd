//! Snapshots, read and compared.

pub(crate) mod bundle;
pub(crate) mod columns;
pub(crate) mod compare;
pub(crate) mod entries;
pub(crate) mod filter;
pub(crate) mod listing_hash;
pub(crate) mod listings;
pub(crate) mod missing;
pub(crate) mod name_index;
pub(crate) mod shards;
pub(crate) mod snapshot;
pub(crate) mod subtree_totals;
