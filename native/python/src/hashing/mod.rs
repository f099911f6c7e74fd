//! Reading content for its digests.

pub(crate) mod block_index;
pub(crate) mod hash;
pub(crate) mod scrub;
