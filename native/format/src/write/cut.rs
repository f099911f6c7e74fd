//! Cuts a long manifest into pieces (FORMAT.md, "Cutting").
//!
//! Streaming: a piece is written as soon as the next one begins.  Cuts depend on names and lengths
//! alone.

use std::collections::HashSet;

use huai_git::bug::fit;
use huai_git::crc::crc32;
use huai_git::error::{Error, Result};
use huai_git::find::split_before;
use huai_git::object::Kind;
use huai_git::oid::Oid;

use super::radix::write_pieces;
use crate::entries::digests::is_zero;
use crate::limits::{DIGEST_BYTES, PIECE_BYTES_MAX, PIECE_LINES, PIECE_LINES_MAX};
use crate::snapshots::{COLUMN_SUFFIX, Key, ObjectWriter, Piece, PieceIds, piece_key};

/// The items of a directory's git tree: manifest and digests, then the trees of further pieces.
const MANIFEST: &[u8] = b"m";
const DIGESTS: &[u8] = b"d";
const PIECES: &[u8] = b"p";
const PIECE_DIGESTS: &[u8] = b"q";

/// Text that is never cut: one leaf, or one subdirectory with everything below it.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// The lines.
    pub(crate) text: Vec<u8>,
    /// The digests: 32 bytes for each file, zeros if absent.
    pub(crate) column: Vec<u8>,
    /// The number of lines.
    pub(crate) lines: usize,
}

impl Unit {
    fn clear(&mut self) {
        self.text.clear();
        self.column.clear();
        self.lines = 0;
    }

    /// Write this as one piece; returns the ids of the text and, if there are any, of the digests.
    fn write(&self, writer: &mut impl ObjectWriter) -> Result<(Oid, Option<Oid>)> {
        let text = writer.write(Kind::Blob, &self.text)?;
        if is_zero(&self.column) {
            return Ok((text, None));
        }
        Ok((text, Some(writer.write(Kind::Blob, &self.column)?)))
    }
}

/// A writer that cuts a manifest into pieces.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    first: Option<(Oid, Option<Oid>)>,
    /// The complete pieces, and the digests of those that have any.
    pieces: PieceIds,
    columns: PieceIds,
    /// The key of the current piece; `None` for the first one.
    key: Option<Key>,
    /// All keys so far.
    keys: HashSet<Key>,
    piece: Unit,
    /// True if the last piece was kept: then there are no lines of a current piece.
    is_kept: bool,
}

impl Cutter {
    /// Add a unit that begins with the name `start`; that of a subdirectory ends with a slash.  Writes
    /// the piece before it if that is complete.
    pub(crate) fn add(
        &mut self,
        start: &[u8],
        unit: &Unit,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        self.cut_before(start, unit.lines, unit.text.len(), writer)?;
        self.piece.text.extend_from_slice(&unit.text);
        self.piece.column.extend_from_slice(&unit.column);
        self.piece.lines = self.piece.lines.saturating_add(unit.lines);
        Ok(())
    }

    /// Add leaves, each as a unit; `digests` may be empty.
    pub(crate) fn add_leaves(
        &mut self,
        leaves: &[u8],
        digests: &[u8],
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let mut rest = leaves;
        let is_absent = digests.is_empty();
        let mut digests = digests.chunks_exact(DIGEST_BYTES);
        while !rest.is_empty() {
            let (line, _) = split_before(rest, b'\n');
            let (line, after) = rest.split_at(line.len().saturating_add(1).min(rest.len()));
            rest = after;
            let (name, fields) = split_before(line, b'\t');
            self.cut_before(name, 1, line.len(), writer)?;
            self.piece.text.extend_from_slice(line);
            if is_file(fields) {
                let absent = is_absent.then_some(&[0; DIGEST_BYTES][..]);
                let digest = digests.next().or(absent);
                let digest = digest.ok_or_else(|| Error::bug("a column with too few digests"))?;
                self.piece.column.extend_from_slice(digest);
            }
            self.piece.lines = self.piece.lines.saturating_add(1);
        }
        Ok(())
    }

    /// Write the last piece, and return the items of the directory's tree for this manifest.  Each has its name, its
    /// id, and true for a tree.
    pub(crate) fn finish(
        mut self,
        writer: &mut impl ObjectWriter,
    ) -> Result<Vec<(&'static [u8], Oid, bool)>> {
        self.flush(writer)?;
        let (manifest, column) = match self.first {
            Some(first) => first,
            None => Unit::default().write(writer)?,
        };
        let mut items = vec![(MANIFEST, manifest, false)];
        items.extend(column.map(|column| (DIGESTS, column, false)));
        if !self.pieces.is_empty() {
            let tree = write_pieces(&self.pieces, b"", writer)?;
            items.push((PIECES, tree, true));
        }
        if !self.columns.is_empty() {
            let tree = write_pieces(&self.columns, COLUMN_SUFFIX, writer)?;
            items.push((PIECE_DIGESTS, tree, true));
        }
        Ok(items)
    }

    /// Write the piece before a unit of these `lines` and `size` bytes if its name `start` or the
    /// size of the piece requires it, unless two pieces would get the same key: `SameKey` if the
    /// piece before was kept.
    fn cut_before(
        &mut self,
        start: &[u8],
        lines: usize,
        size: usize,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        if start.is_empty() {
            return Ok(());
        }
        let full = self.piece.lines.saturating_add(lines) > PIECE_LINES_MAX
            || self.piece.text.len().saturating_add(size) > PIECE_BYTES_MAX;
        if !full && !self.is_kept && !begins_piece(start, lines) {
            return Ok(());
        }
        let key = piece_key(start);
        if self.keys.insert(key) {
            self.flush(writer)?;
            self.key = Some(key);
        } else if self.is_kept {
            return Err(Error::SameKey);
        }
        Ok(())
    }

    /// Keep a complete piece after writing the one before; the next unit begins another one.  Fails
    /// with `SameKey` if another piece has this key.
    pub(crate) fn keep(
        &mut self,
        key: Key,
        piece: Piece,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        if !self.keys.insert(key) {
            return Err(Error::SameKey);
        }
        self.flush(writer)?;
        self.pieces.insert(key, piece.manifest);
        self.columns
            .extend(piece.column.map(|column| (key, column)));
        self.is_kept = true;
        Ok(())
    }

    /// Write the current piece, unless it was kept.
    fn flush(&mut self, writer: &mut impl ObjectWriter) -> Result<()> {
        if std::mem::take(&mut self.is_kept) {
            return Ok(());
        }
        let (text, column) = self.piece.write(writer)?;
        self.piece.clear();
        match self.key {
            None => self.first = Some((text, column)),
            Some(key) => {
                self.pieces.insert(key, text);
                self.columns.extend(column.map(|column| (key, column)));
            }
        }
        Ok(())
    }
}

/// Return true if a unit of this many lines, which begins with the name `start`, begins a piece
/// after any predecessor.
pub(crate) fn begins_piece(start: &[u8], lines: usize) -> bool {
    fit::<_, usize>(crc32(start)) % PIECE_LINES < lines
}

/// Return true if the fields of a leaf, beginning with the tab after its name, are those of a file.
pub(crate) fn is_file(fields: &[u8]) -> bool {
    !fields.starts_with(b"\t>")
}

/// Write a manifest that is not cut, and return the items of its tree, as `Cutter::finish` does.
pub(crate) fn write_whole(
    manifest: Unit,
    writer: &mut impl ObjectWriter,
) -> Result<Vec<(&'static [u8], Oid, bool)>> {
    let piece = manifest;
    let cutter = Cutter {
        piece,
        ..Cutter::default()
    };
    cutter.finish(writer)
}
