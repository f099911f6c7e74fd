//! The git tree of a directory that is not inlined in its parent's manifest (FORMAT.md, "Trees").
//!
//! Decodes the tree, and reads nothing below it.

use huai_git::error::{Error, Result};
use huai_git::oid::Oid;
use huai_git::tree::decode_tree;

use crate::path::{RelPath, at, check_name, quote, show};

/// The ids of one piece of a manifest; equal pieces have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// The id of the text.
    pub manifest: Oid,
    /// The id of the digest column, if there are digests.
    pub column: Option<Oid>,
}

/// The items of the git tree of a directory.
#[derive(Debug, Clone)]
pub struct OwnDirectory {
    /// The path.
    pub path: RelPath,
    /// The manifest, or its first piece if it is cut.
    pub manifest: Piece,
    /// The tree of the other pieces, if there are any.
    pub pieces: Option<Oid>,
    /// The tree of their digest columns.
    pub piece_digests: Option<Oid>,
    /// The raw names of subdirectories with trees of their own, and their ids; sorted by name.
    pub children: Vec<(Vec<u8>, Oid)>,
}

impl OwnDirectory {
    /// Decode the git tree `data` of the directory at `path`; an error for an unknown item, an invalid name, or
    /// without a manifest.
    pub fn decode(path: RelPath, data: &[u8]) -> Result<Self> {
        let place = |error| at(&path, error);
        let mut children = Vec::new();
        let (mut text, mut column, mut pieces, mut piece_digests) = (None, None, None, None);
        for item in decode_tree(data).map_err(place)? {
            match (item.is_tree, item.name) {
                (true, [b'=', name @ ..]) => {
                    check_name(name).map_err(place)?;
                    path.try_join(name)?;
                    children.push((name.to_vec(), item.oid));
                }
                (false, b"m") => text = Some(item.oid),
                (false, b"d") => column = Some(item.oid),
                (true, b"p") => pieces = Some(item.oid),
                (true, b"q") => piece_digests = Some(item.oid),
                (_, name) => {
                    let name = quote(&show(name.get(..80).unwrap_or(name)));
                    let rule = format!("an unknown item {name} in a tree");
                    return Err(place(Error::new(rule)));
                }
            }
        }
        let text = text.filter(|_| piece_digests.is_none() || pieces.is_some());
        let Some(manifest) = text else {
            let rule = "a tree without a manifest, or with digests of nothing";
            return Err(place(Error::new(rule)));
        };
        // Git sorts them as if their names ended in a slash.
        children.sort_unstable();
        Ok(Self {
            path,
            manifest: Piece { manifest, column },
            pieces,
            piece_digests,
            children,
        })
    }

    /// Return the id of the subdirectory `name`, if it has a tree of its own.
    pub fn child(&self, name: &[u8]) -> Option<Oid> {
        let at = self
            .children
            .binary_search_by(|(child, _)| (**child).cmp(name));
        self.children.get(at.ok()?).map(|(_, oid)| *oid)
    }
}
