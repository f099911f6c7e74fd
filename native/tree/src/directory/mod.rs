//! One directory: its names read and sorted, every leaf looked at, the result in one frame, or in
//! parts where it is large.

mod crowd;
mod entries;
mod frame;
mod leaf;
mod packed;
mod reader;
mod varint;

pub use frame::{Directory, Frame, Problem, Reason};
pub(crate) use leaf::identity;
pub(crate) use reader::{Found, Reader, Tree};
