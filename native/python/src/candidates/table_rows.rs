//! Rows of one table, for the engine's functions.

use std::ops::Range;
use std::sync::Arc;

use huai_plan::candidates::{Candidates, EntryKind, Number, Row, Stated};
use huai_tree::hashing::hash::Blake3Digest;
use huai_tree::publish::{Attributes, Leaf, Link, PublishedFile, Remove, Symlink, WantedDirectory};
use huai_tree::stage::arrived::FileKey;
use huai_tree::stage::verify::FileMetadata;
use huai_tree::survey::{Numbers, attributes};
/// Some rows of a table, in any order.  All numbers must be rows of it.
#[derive(Clone)]
pub(crate) struct TableRows {
    pub(crate) table: Arc<Candidates>,
    numbers: Arc<[Number]>,
    range: Range<usize>,
}

impl TableRows {
    /// Choose rows of `table` by their numbers.
    pub(crate) fn new(table: Arc<Candidates>, numbers: impl Into<Arc<[Number]>>) -> Self {
        let numbers = numbers.into();
        let range = 0..numbers.len();
        Self {
            table,
            numbers,
            range,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Return the numbers of the rows in the table.
    pub(crate) fn numbers(&self) -> &[Number] {
        &self.numbers[self.range.clone()]
    }

    /// Return the rows at a range of places here, which must be in range.
    pub(crate) fn slice(&self, places: Range<usize>) -> Self {
        let begin = self.range.start;
        Self {
            range: begin + places.start..begin + places.end,
            ..self.clone()
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        let rows = self.table.rows();
        self.numbers().iter().map(|number| &rows[*number as usize])
    }

    /// Return the row at a place here; `None` beyond the last.
    pub(crate) fn row(&self, place: usize) -> Option<&Row> {
        let number = self.numbers().get(place)?;
        self.table.rows().get(*number as usize)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.iter().map(|row| self.table.path(row))
    }

    /// Return true if the local entry of a row is a directory.
    pub(crate) fn is_directory(&self, row: &Row) -> bool {
        self.table.local(row).kind() == Some(EntryKind::Directory)
    }

    /// Return path and wanted entry of each row; rows without a wanted entry are left out.
    fn entries(&self) -> impl Iterator<Item = (&[u8], Stated)> {
        self.iter()
            .filter_map(|row| Some((self.table.path(row), row.wanted?)))
    }

    /// Return the digest of a wanted entry; `None` if it has none.
    fn digest(&self, wanted: &Stated) -> Option<Blake3Digest> {
        self.table.bytes(wanted.digest).try_into().ok()
    }

    /// Return the digest of each wanted entry, `None` if it has none.
    pub(crate) fn digests(&self) -> impl Iterator<Item = Option<Blake3Digest>> {
        self.entries().map(|(_, wanted)| self.digest(&wanted))
    }

    /// Return the key that identifies each wanted file.
    pub(crate) fn keys(&self) -> impl Iterator<Item = FileKey<'_>> {
        self.entries().map(|(path, wanted)| FileKey {
            path,
            size: wanted.size,
            mtime: wanted.mtime,
            digest: self.digest(&wanted),
        })
    }

    /// Return digest and size of each file with a digest, and its place among the wanted entries.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (Blake3Digest, u64, usize)> {
        let entries = self.entries().enumerate();
        entries.filter_map(|(place, (_, wanted))| Some((self.digest(&wanted)?, wanted.size, place)))
    }

    /// Return the wanted metadata of each file.
    pub(crate) fn metadata(&self) -> impl Iterator<Item = FileMetadata> {
        self.entries().map(|(path, wanted)| FileMetadata {
            path: path.to_vec(),
            size: wanted.size,
            mtime: wanted.mtime,
            mode: wanted.mode.bits.into(),
            digest: self.digest(&wanted),
        })
    }

    /// Return the wanted attributes of each entry, its owners by `numbers`.
    pub(crate) fn attributes(&self, numbers: &Numbers) -> impl Iterator<Item = Attributes> {
        self.entries()
            .map(|(_, wanted)| attributes(&wanted, numbers))
    }

    /// Return path and wanted attributes of each entry.
    pub(crate) fn files(&self, numbers: &Numbers) -> impl Iterator<Item = PublishedFile> {
        let entries = self.entries().zip(self.attributes(numbers));
        entries.map(|((path, _), attributes)| PublishedFile {
            path: path.to_vec(),
            attributes,
        })
    }

    /// Return the wanted entries as files or symlinks with their attributes.
    pub(crate) fn leaves(&self, numbers: &Numbers) -> Vec<Leaf> {
        let entries = self.entries().zip(self.files(numbers));
        let leaf = |((_, wanted), file): ((_, Stated), _)| match wanted.kind {
            EntryKind::Symlink => Leaf::Symlink(file),
            EntryKind::File | EntryKind::Directory => Leaf::File(file),
        };
        entries.map(leaf).collect()
    }

    /// Return each wanted file with its size and attributes, and its leader if it is a hardlink.
    pub(crate) fn links(&self, numbers: &Numbers) -> Vec<Link> {
        let entries = self.entries().zip(self.files(numbers));
        let link = |((_, wanted), file): ((_, Stated), _)| Link {
            file,
            size: wanted.size,
            leader: wanted.is_linked().then(|| self.leader_or_target(&wanted)),
        };
        entries.map(link).collect()
    }

    /// Return each wanted symlink with its target and attributes.
    pub(crate) fn symlinks(&self, numbers: &Numbers) -> Vec<Symlink> {
        let entries = self.entries().zip(self.files(numbers));
        let symlink = |((_, wanted), file): ((_, Stated), PublishedFile)| Symlink {
            path: file.path,
            target: self.leader_or_target(&wanted),
            attributes: file.attributes,
        };
        entries.map(symlink).collect()
    }

    /// Return the leader of a hardlink, or a symlink's target.
    fn leader_or_target(&self, wanted: &Stated) -> Vec<u8> {
        self.table.bytes(wanted.other).to_vec()
    }

    /// Return the rows as directories; those without a wanted entry have no attributes.
    pub(crate) fn directories(&self, numbers: &Numbers) -> Vec<WantedDirectory> {
        let directory = |row: &Row| WantedDirectory {
            path: self.table.path(row).to_vec(),
            attributes: row.wanted.map(|wanted| attributes(&wanted, numbers)),
        };
        self.iter().map(directory).collect()
    }

    /// Return the path of each row, and true if its local entry is a directory.
    pub(crate) fn removals(&self) -> Vec<Remove> {
        let removal = |row: &Row| Remove {
            path: self.table.path(row).to_vec(),
            directory: self.is_directory(row),
        };
        self.iter().map(removal).collect()
    }
}
