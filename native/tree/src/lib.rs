//! Reads and changes file trees by handles, never through a symlink.
//!
//! Does not use Python; `huai_sys` makes the system calls.  Threads live within one call.  A group of modules uses those above it
//! here, never those below.

#[cfg(test)]
#[path = "../../sys/src/steps.rs"]
mod steps;
#[cfg(test)]
#[path = "../../sys/src/temporary.rs"]
mod temporary;

pub mod walk;

pub mod attr_tree;
pub mod bundle;
pub mod digests;
pub mod image;
pub mod large;
pub mod packs;
pub mod scan;
pub mod watch;

pub mod compare;
pub mod hashing;

pub mod commit;
pub mod survey;

pub mod publish;

pub mod stage;
