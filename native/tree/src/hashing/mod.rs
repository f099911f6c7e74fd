//! Digests of content, each proved to be that of the examined file.

pub mod contents;
pub mod hash;
pub mod scrub;
