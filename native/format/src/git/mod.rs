//! Git's objects, packs and pack indices as bytes (gitformat-pack(5)).

pub mod connected;
pub mod deflate;
pub mod delta;
pub mod deltify;
pub mod index;
pub mod inflate;
pub mod object;
pub mod oid;
pub mod read;
pub mod records;
pub mod resolve;
pub mod send;
pub mod tree;
pub mod window;
pub mod write;
