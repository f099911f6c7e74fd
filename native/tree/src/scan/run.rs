//! Directories one after the other about which nothing has to be decided.

use huai_format::find::split_before;
use huai_format::layout::Listing;

use super::directory::Directory;

/// Bytes of a file's record: `huai_server.scan.types.IDENTITY`.
pub(crate) const RECORD: usize = 64;
/// Device, inode, size, mtime, ctime.
const IDENTITY: usize = 40;

/// Tells such directories from others; it is asked about each, in tree order.
#[derive(Debug)]
pub struct Watch {
    device: u64,
    watched: Vec<Vec<u8>>,
    /// The directory that is not left yet, and below which nothing is ordinary.
    apart: Option<Vec<u8>>,
}

impl Watch {
    /// `device`: the file system of all that is ordinary.  What is `watched`, or below, is not.
    pub fn new(device: u64, watched: Vec<Vec<u8>>) -> Self {
        Self {
            device,
            watched,
            apart: None,
        }
    }

    /// Whether nothing has to be decided about this directory.
    pub fn is_ordinary(&mut self, directory: &Directory) -> bool {
        let path = directory.path.as_slice();
        if self.apart.as_ref().is_some_and(|top| is_within(path, top)) {
            return false;
        }
        self.apart = None;
        if directory.device != self.device || self.watched.iter().any(|each| each == path) {
            self.apart = Some(path.to_vec());
            return false;
        }
        directory.is_plain && !path.is_empty()
    }
}

fn is_within(path: &[u8], top: &[u8]) -> bool {
    let below = path.strip_prefix(top);
    below.is_some_and(|rest| matches!(rest, [] | [b'/', ..])) || top.is_empty()
}

/// Such directories, with their digests as soon as these are known.
#[derive(Debug)]
pub struct Run {
    /// In tree order.
    pub directories: Vec<Directory>,
    /// A digest column for each directory; empty: all absent.
    pub columns: Vec<Vec<u8>>,
}

/// What a run holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Directories, each counted where it begins.
    pub directories: u64,
    /// Regular files.
    pub files: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// Of the content of files.
    pub bytes: u64,
    /// Entries that no snapshot holds.
    pub skipped: u64,
}

impl From<Vec<Directory>> for Run {
    fn from(directories: Vec<Directory>) -> Self {
        let columns = vec![Vec::new(); directories.len()];
        Self {
            directories,
            columns,
        }
    }
}

impl Run {
    /// Whether some file has more than one name.
    pub fn has_hardlinks(&self) -> bool {
        self.directories.iter().any(|each| each.hardlinks)
    }

    /// How much is in it.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for directory in &self.directories {
            let lines: u64 = directory
                .leaves
                .iter()
                .map(|&byte| u64::from(byte == b'\n'))
                .sum();
            let records = directory.identities.chunks_exact(RECORD);
            let files = records.len() as u64;
            totals.directories += u64::from(!directory.goes_on());
            totals.files += files;
            totals.symlinks += lines - files;
            totals.skipped += directory.skipped;
            let size = |record: &[u8]| record.get(16..24)?.first_chunk().copied();
            let sizes = records.filter_map(size).map(u64::from_le_bytes);
            totals.bytes = sizes.fold(totals.bytes, u64::saturating_add);
        }
        totals
    }

    /// Every directory as it is laid out.
    pub fn listings(&self) -> impl Iterator<Item = Listing<'_>> {
        let pairs = self.directories.iter().zip(&self.columns);
        pairs.map(|(directory, column)| Listing {
            path: &directory.path,
            attributes: &directory.attributes,
            leaves: &directory.leaves,
            digests: column,
        })
    }

    /// The path of a file, its name still escaped, and its record up to the ctime.
    pub fn file(&self, directory: usize, number: usize) -> Option<(&[u8], &[u8], &[u8])> {
        let directory = self.directories.get(directory)?;
        let record = directory.identities.chunks_exact(RECORD).nth(number)?;
        let offset = u32::from_le_bytes(*record.get(44..48)?.first_chunk()?);
        let line = directory.leaves.get(usize::try_from(offset).ok()?..)?;
        Some((
            &directory.path,
            split_before(line, b'\t').0,
            record.get(..IDENTITY)?,
        ))
    }
}
