//! The file list of an rsync sender, protocol 30 and newer, as a client gets it.
//!
//! The caller connects, and passes on the bytes both ways; it asked for links, hardlinks, devices,
//! owners, modes and times (`-lHDogpt`), and for nothing that adds to an entry.

mod list;
mod stream;

pub use list::RsyncList;
