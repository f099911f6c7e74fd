//! Cutting a long manifest into pieces (FORMAT.md, "Cutting").
//!
//! Streaming: a piece leaves as soon as the next one begins.  Where cuts fall follows from names
//! and lengths alone.

use std::collections::HashSet;

use crate::bug::fit;
use crate::crc::crc32;
use crate::digests::is_zero;
use crate::error::{Error, Result};
use crate::find::split_before;
use crate::git::object::Kind;
use crate::git::oid::Oid;
use crate::limits::{DIGEST_BYTES, PIECE_BYTES_MAX, PIECE_LINES, PIECE_LINES_MAX};
use crate::objects::ObjectWriter;
use crate::own_directory::Piece;
use crate::piece::{COLUMN_SUFFIX, Found, Key, piece_key};
use crate::radix::write_pieces;

/// Items of a directory's git tree: manifest and digests, then the trees of the other pieces.
const MANIFEST: &[u8] = b"m";
const DIGESTS: &[u8] = b"d";
const PIECES: &[u8] = b"p";
const PIECE_DIGESTS: &[u8] = b"q";

/// Text that is never cut, and what belongs to it: one leaf, or one subdirectory with all below.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// Its lines.
    pub(crate) text: Vec<u8>,
    /// 32 bytes for each file, zeros where there is no digest.
    pub(crate) column: Vec<u8>,
    /// How many lines.
    pub(crate) lines: usize,
}

impl Unit {
    fn clear(&mut self) {
        self.text.clear();
        self.column.clear();
        self.lines = 0;
    }

    /// The blobs of this as one piece: the text, and the digests if there are any.
    fn write(&self, writer: &mut impl ObjectWriter) -> Result<(Oid, Option<Oid>)> {
        let text = writer.write(Kind::Blob, &self.text)?;
        if is_zero(&self.column) {
            return Ok((text, None));
        }
        Ok((text, Some(writer.write(Kind::Blob, &self.column)?)))
    }
}

/// A manifest that is cut while it is written.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    first: Option<(Oid, Option<Oid>)>,
    /// Complete pieces, and the digests of those that have any.
    pieces: Found,
    columns: Found,
    /// The key of the piece that is being collected; none: the first one.
    key: Option<Key>,
    /// All keys so far.
    keys: HashSet<Key>,
    piece: Unit,
    /// The last piece was kept: nothing is being collected.
    is_kept: bool,
}

impl Cutter {
    /// Adds a unit that begins with the name `start`, a subdirectory's with its slash.
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

    /// Adds leaves, each a unit; `digests` may be empty.
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

    /// The items of the directory's tree that the manifest makes.
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

    /// Ends the piece before a unit where its name or the size of the piece says so, unless two
    /// pieces would get the same name.
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

    /// Takes over a complete piece, which the next unit does not go on with.
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

/// Whether a unit of so many lines that begins with the name `start` begins a piece whatever comes
/// before it.
pub(crate) fn begins_piece(start: &[u8], lines: usize) -> bool {
    fit::<_, usize>(crc32(start)) % PIECE_LINES < lines
}

/// Whether the fields of a leaf, from the tab behind its name on, are a file's.
pub(crate) fn is_file(fields: &[u8]) -> bool {
    !fields.starts_with(b"\t>")
}

/// The items of a manifest that is not cut.
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
