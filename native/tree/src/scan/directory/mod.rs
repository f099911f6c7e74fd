//! Scans one directory: reads and sorts its names, and examines every leaf; the result is one
//! frame, or several parts if it is large.

mod entries;
pub(super) mod file_systems;
mod frame;
mod large;
mod leaf;
mod packed;
mod place;
mod reader;
mod varint;

pub use frame::{Directory, Frame, Problem, Reason, View};
pub use place::ScanOptions;

pub(crate) use frame::{LINKS, MODE, OFFSET, RECORD, inode, word};
pub(crate) use large::ReadDirectory;
pub(crate) use leaf::identity;
pub(crate) use place::Tree;
pub(crate) use reader::Reader;
