//! Passes over all entries of a snapshot.

mod digested;
mod found_digests;
mod hardlink;
mod part;
mod shards;
mod subtree_totals;
mod undigested;

pub use digested::{Digested, DigestedFile};
pub use found_digests::FoundDigests;
pub use hardlink::{check_hardlinks, check_hardlinks_at};
pub use part::read_part;
pub use shards::{Cut, plan_shards};
pub use subtree_totals::SubtreeTotals;
pub use undigested::{Undigested, UndigestedFile};
