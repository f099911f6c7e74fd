//! The tree of a commit, from the scan of a directory to git objects.
//!
//! Either everything is scanned (`whole`), or what a list names is looked at (`listed`).  Where a path
//! could not be read, or changed while it was read, the entries of the last commit stay.

mod digesting;
mod failure;
mod listed;
mod mounts;
mod past;
mod remarks;
mod whole;

pub use digesting::{Digesting, Policy, Read};
pub use failure::{Failure, Outcome, Problem, Result};
pub use listed::{Found, Listed};
pub use mounts::Mounts;
pub use remarks::{Remark, Remarks};
pub use whole::{Whole, WholeOptions, read_whole};
