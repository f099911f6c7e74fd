//! One directory: its names read and sorted, every leaf looked at, the result in one frame, or in
//! parts where it is large.

mod crowd;
mod entries;
mod frame;
mod leaf;
mod packed;
mod place;
mod reader;
mod varint;

pub use frame::{Directory, Frame, Problem, Reason};
pub use place::Options;

pub(crate) use crowd::Found;
pub(crate) use frame::{LINKS, MODE, OFFSET, RECORD, word};
pub(crate) use leaf::identity;
pub(crate) use place::Tree;
pub(crate) use reader::Reader;
