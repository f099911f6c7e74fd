//! Reads the git objects of a snapshot: trees, manifests and their pieces.

mod entry_limit;
mod level;
mod lookup;
mod manifest;
mod objects;
mod own_directory;
mod piece;
mod snapshot;

pub use entry_limit::EntryLimit;
pub use level::{Level, Step, Walk, join_blocks};
pub use lookup::{Lookup, Subtree};
pub use manifest::{InlineDirectory, Listing, Manifest, ManifestBlock, piece_start};
pub use objects::{Ids, ObjectReader, ObjectWriter};
pub use own_directory::{OwnDirectory, Piece};
pub(crate) use piece::COLUMN_SUFFIX;
pub use piece::{Key, PieceIds, PieceTree, piece_key, unequal};
pub use snapshot::{Located, PieceName, Snapshot, Start, Text};
