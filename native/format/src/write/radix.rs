//! Writes the radix tree of the pieces of a cut manifest (FORMAT.md, "Pieces").
//!
//! Uses names and ids only, never the content of a piece; `piece` reads it.

use huai_git::error::Result;
use huai_git::object::Kind;
use huai_git::oid::Oid;
use huai_git::tree::{TreeItem, encode_tree};

use crate::limits::FANOUT;
use crate::snapshots::{Key, ObjectWriter, PieceIds};

/// Write the tree of pieces, each named by its key and `suffix`; returns its id.
pub(crate) fn write_pieces(
    pieces: &PieceIds,
    suffix: &[u8],
    writer: &mut impl ObjectWriter,
) -> Result<Oid> {
    let pieces: Vec<_> = pieces.iter().collect();
    write_level(&pieces, 0, suffix, writer)
}

/// Write the tree of pieces that share their first `depth` digits: split by the next digit if
/// there are many, and no deeper than a key is long.
fn write_level(
    pieces: &[(&Key, &Oid)],
    depth: usize,
    suffix: &[u8],
    writer: &mut impl ObjectWriter,
) -> Result<Oid> {
    let is_split = pieces.len() > FANOUT;
    let mut names: Vec<(Vec<u8>, Oid)> = Vec::new();
    if is_split {
        let digit = |key: &Key| key.get(depth).copied();
        for group in pieces.chunk_by(|(one, _), (other, _)| digit(one) == digit(other)) {
            let oid = write_level(group, depth.saturating_add(1), suffix, writer)?;
            let name = group.first().and_then(|(key, _)| digit(key));
            names.push((name.into_iter().collect(), oid));
        }
    } else {
        let named_item = |(key, oid): &(&Key, &Oid)| ([key.as_slice(), suffix].concat(), **oid);
        names.extend(pieces.iter().map(named_item));
    }
    let items = names.iter().map(|(name, oid)| TreeItem {
        name,
        oid: *oid,
        is_tree: is_split,
    });
    writer.write(Kind::Tree, &encode_tree(items.collect()))
}
