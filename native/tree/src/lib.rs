//! What touches a disk: file trees, read and changed by handle, never through a symlink.
//!
//! Knows no Python.  Whatever changes a file is done by one thread; everything parallel only reads.

pub mod error;
pub mod stop;
