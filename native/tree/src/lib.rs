//! What touches a disk: file trees, read and changed by handle, never through a symlink.
//!
//! Knows no Python.  Threads live within one call.  In the order of the data:

pub mod attr_tree;
pub mod contents;
pub mod digests;
pub mod error;
mod file_systems;
pub mod pace;
pub mod stop;

mod attributes;
mod call;
mod change;
mod folders;
mod handle;
pub mod regular;
mod workers;

mod exclude;
mod listing;

mod line;
pub mod owners;

mod ahead;
mod directory;
pub mod hardlinks;
pub mod linked;
mod pending;
mod queue;
pub mod run;
pub mod scan;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod temporary;
pub mod touched;
pub mod watch;

pub mod candidates;
pub mod compare;
mod difference;
pub mod differing;
mod extraneous;
pub mod findings;
mod local;
pub mod numbers;
mod records;
pub mod scope;
pub mod survey;
pub mod unhashed;

pub mod arrived;
pub mod assemble;
pub mod copy;
pub mod hash;
pub mod image;
mod rolling;
pub mod scrub;
mod shifted;
pub mod stage;

pub mod pack_writer;
pub mod packs;
mod recent;
pub mod sending;

pub mod publish;
pub mod remove;

pub use directory::{Directory, Frame, Options, Problem, Reason};
