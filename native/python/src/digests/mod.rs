//! Digests that are kept, and files that have none.

pub(crate) mod found_digests;
pub(crate) mod undigested;
