//! Reads a snapshot: own directories and the pieces of their manifests.
//!
//! Reads objects through an `ObjectReader` and nothing else.  The results have been checked,
//! except for rules that are checked when a line is decoded, and for rules about a whole directory
//! of which only a part was read (FORMAT.md, "What a reader must check").

use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;

use super::manifest::{Manifest, piece_start};
use super::objects::ObjectReader;
use super::own_directory::{OwnDirectory, Piece};
use super::piece::{Key, PieceTree, piece_key};
use crate::escape::unescape;
use crate::limits::{DIGEST_BYTES, MANIFEST_BYTES, MANIFEST_LINES};
use crate::path::{RelPath, at, show};
use crate::shared::Shared;

/// The bytes of a piece that are read for its start, which is shorter: a directory's name, escaped, and a slash.
const HEAD_BYTES: usize = 2048;
const COLUMN_BYTES: usize = MANIFEST_LINES * DIGEST_BYTES;

/// The key of a piece in its directory; `None` for the first one.
pub type PieceName = Option<Key>;

/// The start of a piece, by which pieces sort.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// The directory's own line.
    Own,
    /// A leaf with this name.
    Leaf(Vec<u8>),
    /// A subdirectory with this name; NUL stands for a slash.
    Directory(Vec<u8>),
}

/// A piece and its start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Located {
    /// The start, by which pieces sort.
    pub start: Start,
    /// The name in the tree of pieces.
    pub name: PieceName,
    /// The ids.
    pub piece: Piece,
}

/// The text of a manifest or piece, and its digest column.
#[derive(Debug, Clone)]
pub struct Text {
    /// The lines.
    pub text: Shared,
    /// The digests; may be empty.
    pub column: Shared,
}

/// The metadata of a module at one commit.
#[derive(Debug)]
pub struct Snapshot<R> {
    /// The source of its objects.
    pub reader: R,
    /// The id of the root directory's own tree.
    pub tree: Oid,
}

impl<R: ObjectReader> Snapshot<R> {
    /// Read the tree of the own directory at `path`, and no manifest.
    pub fn own_directory(&self, path: RelPath, tree: Oid) -> Result<OwnDirectory> {
        OwnDirectory::decode(path, &self.reader.read(&tree, Kind::Tree)?)
    }

    /// Read the beginning of a piece, and return its start too; an error unless the piece is named
    /// after it.  What follows the start may be damaged.
    pub(crate) fn head(
        &self,
        name: PieceName,
        piece: &Piece,
        place: &RelPath,
    ) -> Result<(Vec<u8>, Start)> {
        let (oid, size) = (&piece.manifest, HEAD_BYTES);
        let text = check_start(name, self.reader.read_head(oid, Kind::Blob, size)?, place)?;
        let start = start_of(&text, place)?;
        Ok((text, start))
    }

    /// Read one piece with its digests; an error unless its key is that of its start and both are
    /// within the limits.  `place`, its directory, is for errors.
    pub fn text(&self, name: PieceName, piece: &Piece, place: &RelPath) -> Result<Text> {
        let text = self.manifest_text(name, piece, place)?;
        let mut column = Vec::new();
        if let Some(oid) = piece.column {
            column = self.reader.read(&oid, Kind::Blob)?;
            if column.is_empty() {
                return Err(at(place, Error::new("an empty digest column")));
            }
        }
        if column.len() > COLUMN_BYTES {
            let rule = format!("a digest column of more than {COLUMN_BYTES} bytes");
            return Err(at(place, Error::new(rule)));
        }
        Ok(Text {
            text: Shared::from(text),
            column: Shared::from(column),
        })
    }

    /// Read and split one piece, as `text` and `Manifest::decode` do.
    pub fn manifest(&self, name: PieceName, piece: &Piece, place: &RelPath) -> Result<Manifest> {
        let Text { text, column } = self.text(name, piece, place)?;
        Manifest::decode(&text, &column).map_err(|error| at(place, error))
    }

    /// Read the text of a piece, and return its start.
    pub fn start(&self, name: PieceName, piece: &Piece, place: &RelPath) -> Result<Start> {
        let text = self.manifest_text(name, piece, place)?;
        start_of(&text, place)
    }

    /// Return all pieces, sorted by start.
    ///
    /// Keys are hashes without order, so each piece is read once for its start.
    pub fn pieces(&self, directory: &OwnDirectory) -> Result<Vec<Located>> {
        let mut located = Vec::new();
        for (name, piece) in self.piece_ids(directory)? {
            let start = match name {
                Some(_) => self.start(name, &piece, &directory.path)?,
                None => Start::Own,
            };
            located.push(Located { start, name, piece });
        }
        located.sort();
        Ok(located)
    }

    /// Return the names and ids of all pieces, the first one and then the later ones in any
    /// order; reads none of them.
    pub(crate) fn piece_ids(&self, directory: &OwnDirectory) -> Result<Vec<(PieceName, Piece)>> {
        let place = &directory.path;
        let texts = PieceTree::texts(&self.reader, directory.pieces, place).all()?;
        let columns = PieceTree::columns(&self.reader, directory.piece_digests, place).all()?;
        if !columns.keys().all(|key| texts.contains_key(key)) {
            let rule = "a digest column without its manifest";
            return Err(at(place, Error::new(rule)));
        }
        let later_pieces = texts.into_iter().map(|(key, manifest)| {
            let column = columns.get(&key).copied();
            (Some(key), Piece { manifest, column })
        });
        Ok(std::iter::once((None, directory.manifest))
            .chain(later_pieces)
            .collect())
    }

    /// Return the ids of all pieces, without reading them.
    pub fn manifests(&self, directory: &OwnDirectory) -> Result<Vec<Oid>> {
        let texts = PieceTree::texts(&self.reader, directory.pieces, &directory.path).all()?;
        let first = std::iter::once(directory.manifest.manifest);
        Ok(first.chain(texts.into_values()).collect())
    }

    /// Read the text of a piece, checking its size, and that its key is that of its start.
    pub(crate) fn manifest_text(
        &self,
        name: PieceName,
        piece: &Piece,
        place: &RelPath,
    ) -> Result<Vec<u8>> {
        let text = self.reader.read(&piece.manifest, Kind::Blob)?;
        if text.len() > MANIFEST_BYTES {
            let rule = format!("a manifest of more than {MANIFEST_BYTES} bytes");
            return Err(at(place, Error::new(rule)));
        }
        check_start(name, text, place)
    }
}

/// Return the text of a piece if the piece is named after its start, else an error.
fn check_start(name: PieceName, text: Vec<u8>, place: &RelPath) -> Result<Vec<u8>> {
    let start = piece_start(&text).map_err(|error| at(place, error))?;
    check_key(name, start).map_err(|error| at(place, error))?;
    Ok(text)
}

/// Return the last of the sorted pieces that begins at or before `start`: no other can contain it.
/// `None` if all begin later.
pub(super) fn holding<'a>(pieces: &'a [Located], start: &Start) -> Option<&'a Located> {
    let after = pieces.partition_point(|piece| piece.start <= *start);
    pieces.get(..after).and_then(<[Located]>::last)
}

/// Return the start of a piece with this text.
fn start_of(text: &[u8], place: &RelPath) -> Result<Start> {
    Start::parse(piece_start(text)?, place)
}

impl Start {
    /// Parse the escaped name with which a piece begins; empty for the directory's own line.
    pub(crate) fn parse(start: &[u8], place: &RelPath) -> Result<Self> {
        if start.is_empty() {
            return Ok(Self::Own);
        }
        let parsed = match start.strip_suffix(b"/") {
            None => unescape(start).map(|name| Self::Leaf(name.into_owned())),
            Some(name) => unescape(name).map(|name| {
                let key = name.iter().map(|&byte| if byte == b'/' { 0 } else { byte });
                Self::Directory(key.collect())
            }),
        };
        parsed.map_err(|error| at(place, error))
    }
}

/// Return an error unless the piece `name` is named after its start.
fn check_key(name: PieceName, start: &[u8]) -> Result<()> {
    match name {
        None if start.is_empty() => Ok(()),
        None => Err(Error::new("a directory without its own line")),
        Some(key) if !start.is_empty() && key == piece_key(start) => Ok(()),
        Some(_) => {
            let first_name = show(start.get(..200).unwrap_or(start));
            Err(Error::new("a piece is not named after its start").within(first_name))
        }
    }
}
