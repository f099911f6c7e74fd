//! The digests of content, each proved to be that of the file that was seen.

pub mod contents;
pub mod hash;
pub mod scrub;
