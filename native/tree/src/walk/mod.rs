//! Walks through a tree in tree order: directories read ahead, exclusions, names and numbers
//! of owners, and the format of numbers.

pub(crate) mod ahead;
pub(crate) mod exclude;
pub(crate) mod line;
pub mod numbers;
pub mod owners;
pub(crate) mod queue;
