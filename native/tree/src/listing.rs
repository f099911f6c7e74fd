//! The names of one directory, sorted.

use std::cmp::Ordering;
use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::call;

/// What is asked of getdents64(2) at once.
const RAW_BYTES: usize = 64 << 10;
/// What is kept from one directory to the next.
const KEPT_BYTES: usize = 1 << 20;

/// Names with their types, in memory that is used again for the next directory.
#[derive(Debug, Default)]
pub(crate) struct Names {
    raw: Vec<u8>,
    /// Each ended by NUL.
    text: Vec<u8>,
    entries: Vec<Entry>,
}

/// Sixteen bytes: a directory may hold millions.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The first bytes of the name: comparing these decides nearly always.
    key: u64,
    begin: u32,
    /// Without its NUL.
    length: u16,
    kind: FileType,
}

impl Entry {
    fn begin(&self) -> usize {
        self.begin as usize
    }

    fn end(&self) -> usize {
        self.begin() + usize::from(self.length)
    }
}

impl Names {
    /// Reads an open directory from where it stands; `wanted` says which names to keep.
    pub(crate) fn read(
        &mut self,
        directory: BorrowedFd<'_>,
        mut wanted: impl FnMut(&[u8], FileType) -> bool,
    ) -> Result<(), Errno> {
        let Self { raw, text, entries } = self;
        text.clear();
        entries.clear();
        reserve(raw, RAW_BYTES)?;
        call::read_names(directory, raw.spare_capacity_mut(), |name, kind| {
            if wanted(name.to_bytes(), kind) {
                add(text, entries, name, kind)?;
            }
            Ok(())
        })?;
        entries.sort_unstable_by(|one, other| compare(text, one, other));
        // A damaged directory may list a name twice.
        entries.dedup_by(|one, other| compare(text, one, other) == Ordering::Equal);
        Ok(())
    }

    /// Every name in order, with what the directory says it is.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&CStr, FileType)> {
        self.entries.iter().filter_map(|entry| {
            let bytes = self.text.get(entry.begin()..=entry.end())?;
            Some((CStr::from_bytes_with_nul(bytes).ok()?, entry.kind))
        })
    }

    /// Gives back what one exceptional directory needed.
    pub(crate) fn relax(&mut self) {
        self.entries.clear();
        self.entries.shrink_to(KEPT_BYTES / size_of::<Entry>());
        self.text.clear();
        self.text.shrink_to(KEPT_BYTES);
    }
}

/// Room for `more` bytes, or an error where there is no memory: a vector that grows by itself ends
/// the process.
pub(crate) fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), Errno> {
    vector.try_reserve(more).map_err(|_| Errno::NOMEM)
}

fn add(
    text: &mut Vec<u8>,
    entries: &mut Vec<Entry>,
    name: &CStr,
    kind: FileType,
) -> Result<(), Errno> {
    let bytes = name.to_bytes_with_nul();
    reserve(text, bytes.len())?;
    reserve(entries, 1)?;
    let mut key = [0; 8];
    for (to, from) in key.iter_mut().zip(bytes) {
        *to = *from;
    }
    entries.push(Entry {
        key: u64::from_be_bytes(key),
        begin: u32::try_from(text.len()).map_err(|_| Errno::NOMEM)?,
        length: u16::try_from(bytes.len() - 1).map_err(|_| Errno::NAMETOOLONG)?,
        kind,
    });
    text.extend_from_slice(bytes);
    Ok(())
}

fn compare(text: &[u8], one: &Entry, other: &Entry) -> Ordering {
    one.key
        .cmp(&other.key)
        .then_with(|| name(text, one).cmp(name(text, other)))
}

fn name<'a>(text: &'a [u8], entry: &Entry) -> &'a [u8] {
    text.get(entry.begin()..entry.end()).unwrap_or_default()
}
