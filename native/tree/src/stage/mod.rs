//! The staging area: verified transfers, and copies of content of this machine.

pub mod arrived;
pub mod copy;
pub mod verify;
