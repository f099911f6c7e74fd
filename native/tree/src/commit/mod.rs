//! The tree of a commit, from the scan of a directory to git objects.
//!
//! Either everything is scanned (`whole`), perhaps in parts (`shards`), or only listed paths are
//! looked at (`listed`).  If a path could not be read, or changed while it was read, the entries of
//! the last commit stay.

mod digesting;
mod failure;
mod listed;
mod mounts;
mod past;
mod remarks;
mod shards;
mod whole;

pub use digesting::{Digesting, Policy, Read};
pub use failure::{CommitProblem, Failure, Result, Substitute};
pub use listed::{Listed, ListedPaths};
pub use mounts::Mounts;
pub use remarks::{Remark, Remarks};
pub use shards::{Part, Shard, relink};
pub use whole::{WholeCommit, WholeOptions, read_whole};
