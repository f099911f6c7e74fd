//! EROFS images of snapshots: names and attributes without content (Linux: `fs/erofs/erofs_fs.h`).

mod blocks;
pub mod builder;
mod children;
mod ondisk;

pub use blocks::ImageSink;
pub use builder::ImageBuilder;
