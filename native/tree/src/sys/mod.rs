//! System calls, and what uses only them: handles, listings, attributes, errors, threads.
//!
//! Rule to keep: only `call` and `change` make system calls.

pub(crate) mod attributes;
pub(crate) mod call;
pub(crate) mod change;
pub mod error;
pub(crate) mod file_systems;
pub(crate) mod folders;
pub(crate) mod handle;
pub(crate) mod listing;
pub mod pace;
pub mod regular;
pub mod remove;
pub mod stop;
pub(crate) mod workers;
