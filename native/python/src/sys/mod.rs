//! The parts of every call: the one door to long calls, errors, and state that threads share.

pub(crate) mod errors;
pub(crate) mod guarded;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod regular;
pub(crate) mod remove;
pub(crate) mod wait;
