//! Checks the operations in a tree in every situation.
//!
//! Each case runs as root and as an ordinary user, if this process may be both.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod folders;
mod publish;
mod stage;
#[path = "../../../sys/src/temporary.rs"]
mod temporary;
mod world;
