//! Watches a tree for changes.

mod pending;
pub mod tree_watch;
mod watched;
