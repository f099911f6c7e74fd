//! The formats of other programs: file lists and EROFS images, lists of changed paths.
//!
//! Pure, as the format is: reads no disk, no clock and no environment, and starts no thread.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

pub mod change_list;
pub mod erofs;
pub mod filelist;
