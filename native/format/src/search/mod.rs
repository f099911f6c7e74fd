//! Searches for names in a snapshot.

mod find;
mod name_index;
mod text;

pub use find::{Search, SearchEnd};
pub use name_index::NameIndex;
pub use text::SearchText;
