//! A walk through a tree, in tree order: directories read ahead, what is left out, names and numbers
//! of owners, and the spelling of numbers.

pub(crate) mod ahead;
pub(crate) mod exclude;
pub(crate) mod line;
pub mod numbers;
pub mod owners;
pub(crate) mod queue;
