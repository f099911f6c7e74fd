//! System calls, and what uses only them: handles, listings, attributes, errors, threads.
//!
//! No other crate makes system calls.  Rule to keep: only `call` and `change` make them, and only
//! `change` those that change files.  Threads live within one call.

#[cfg(test)]
mod steps;
#[cfg(test)]
mod temporary;

pub mod attributes;
pub mod call;
pub mod change;
pub mod error;
pub mod folders;
pub mod handle;
pub mod listing;
pub mod pace;
pub mod progress;
pub mod regular;
pub mod remove;
pub mod stop;
pub mod workers;
