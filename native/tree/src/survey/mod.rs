//! The local state of candidates: attributes, and digests where only content decides.

mod findings;
mod local;
pub mod unhashed;

pub use findings::TableFindings;
pub(crate) use local::survey;
pub use local::{Numbers, Refused, attributes};
