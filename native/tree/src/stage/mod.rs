//! The staging area: what arrived there, and what is copied there from this machine.

pub mod arrived;
pub mod copy;
pub mod verify;
