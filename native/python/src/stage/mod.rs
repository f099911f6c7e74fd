//! The files in the staging area.

pub(crate) mod arrived;
pub(crate) mod bundle;
pub(crate) mod copy;
pub(crate) mod requests;
pub(crate) mod verify;
