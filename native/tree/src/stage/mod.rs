//! The staging area: verified transfers, bundles, and copies of content of this machine.

pub mod arrived;
pub mod copy;

pub mod bundle;
pub mod verify;
