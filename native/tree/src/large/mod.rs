//! Large files, put together from blocks that are here and blocks that are fetched.

pub mod assemble;
mod rolling;
mod shifted;
