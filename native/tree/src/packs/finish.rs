//! Makes an unfinished pack complete, durable and visible.
//!
//! Order of writes: the pack, its index, both under names that git ignores; the pack's name; the
//! index's name, by which git finds both, as the last step.

use std::os::fd::{AsFd, BorrowedFd};

use huai_git::oid::{Checksum, OID_BYTES, Oid};
use huai_git::records;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::Errno;

/// The bytes of a read for the checksum.
const BLOCK: usize = 1 << 20;
/// The mode of a complete pack, which no process writes to.
const COMPLETE: u32 = 0o444;
const INDEX: &[u8] = b".index";

/// A pack under a temporary name, which must not end in .pack: git reads such files.
#[derive(Clone, Copy)]
pub(super) struct Unfinished<'a> {
    pub(super) folder: BorrowedFd<'a>,
    pub(super) name: &'a [u8],
    /// The open pack, for reading and writing.
    pub(super) file: BorrowedFd<'a>,
}

/// Return the temporary name of a pack's index.
pub(super) fn index_name(name: &[u8]) -> Vec<u8> {
    [name, INDEX].concat()
}

impl Unfinished<'_> {
    /// Set the number of objects in the header, and write at `end` the checksum of everything
    /// before it, which is returned.
    pub(super) fn seal(&self, objects: usize, end: u64) -> Outcome<[u8; OID_BYTES]> {
        let objects = u32::try_from(objects).map_err(|_| Errno::FBIG)?;
        let mut checksum = Checksum::default();
        let header = records::header(objects);
        checksum.update(&header);
        let mut at = header.len() as u64;
        let mut block = vec![0; BLOCK];
        while at < end {
            let left = usize::try_from(end - at).unwrap_or(BLOCK).min(BLOCK);
            let block = &mut block[..left];
            call::read_all_at(self.file, at, block)?;
            checksum.update(block);
            at += left as u64;
        }
        let checksum = checksum.finish();
        change::write_at(self.file, 0, &header)?;
        change::write_at(self.file, end, &checksum)?;
        Ok(checksum)
    }

    /// Write the index, make both durable, and rename them; returns the pack's name without a suffix,
    /// and true if it is new.  It is named after its bytes, so it can only replace an equal one.
    pub(super) fn publish(
        &self,
        checksum: &[u8; OID_BYTES],
        index: &[u8],
    ) -> Outcome<(Vec<u8>, bool)> {
        change::set_mode(self.file, COMPLETE)?;
        change::sync(self.file)?;
        let index_name = index_name(self.name);
        let file = change::make_file(self.folder, &index_name)?;
        change::write(file.as_fd(), index)?;
        change::set_mode(file.as_fd(), COMPLETE)?;
        change::sync(file.as_fd())?;
        let stem = format!("pack-{}", Oid::new(*checksum)).into_bytes();
        let [pack, index] = [&b".pack"[..], b".idx"].map(|suffix| [&stem, suffix].concat());
        let is_new = matches!(
            call::status_at(self.folder, pack.as_slice()),
            Err(Errno::NOENT)
        );
        change::rename((self.folder, self.name), (self.folder, &pack))?;
        change::rename((self.folder, &index_name), (self.folder, &index))?;
        change::sync(self.folder)?;
        Ok((stem, is_new))
    }
}
