//! Files and symlinks, as lines (FORMAT.md, "Lines") and as records of their states.

use huai_format::entries::{FILE_MODE, SYMLINK_MODE};
use huai_format::escape::put_escaped;
use huai_sys::call::{Outcome, Status};
use huai_sys::error::Errno;
use huai_sys::listing::reserve;

use super::frame::RECORD;
use crate::walk::line;

/// The permission that others need to read a file.
const OTHERS_READ: u32 = 0o004;

/// A scanned file or symlink.
#[derive(Debug)]
pub(crate) struct Leaf<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) status: Status,
    /// The fields of owner and group, as `Owners` spells them.
    pub(crate) owners: &'a [u8],
    /// The target of a symlink; `None` for a file.
    pub(crate) target: Option<&'a [u8]>,
}

/// The leaves of a directory, or of a part of one, as text and as records.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    pub(crate) lines: Vec<u8>,
    pub(crate) identities: Vec<u8>,
    /// True if a file has more than one name.
    pub(crate) hardlinks: bool,
    /// The number of files that others cannot read.
    pub(crate) unreadable: u64,
}

impl Leaves {
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.identities.clear();
        (self.hardlinks, self.unreadable) = (false, 0);
    }

    /// Add the line of the next leaf and, for a file, its identity.
    pub(crate) fn add(&mut self, leaf: &Leaf<'_>) -> Outcome<()> {
        let status = &leaf.status;
        let begin = self.lines.len();
        let text = leaf.name.len() + leaf.target.map_or(0, <[u8]>::len);
        reserve(
            &mut self.lines,
            line::FIXED + 4 * text + leaf.owners.len() + 1,
        )?;
        put_escaped(&mut self.lines, leaf.name);
        self.lines.push(b'\t');
        match leaf.target {
            None => line::put_decimal(&mut self.lines, status.size),
            Some(target) => {
                self.lines.push(b'>');
                put_escaped(&mut self.lines, target);
            }
        }
        self.lines.push(b'\t');
        line::put_time(&mut self.lines, status.mtime);
        let usual_mode = leaf.target.map_or(FILE_MODE, |_| SYMLINK_MODE);
        line::put_mode(&mut self.lines, status.mode, usual_mode);
        self.lines.extend_from_slice(leaf.owners);
        self.lines.push(b'\n');
        if leaf.target.is_some() {
            return Ok(());
        }
        self.hardlinks |= status.links > 1;
        self.unreadable += u64::from(status.mode & OTHERS_READ == 0);
        self.put_identity(status, begin)
    }

    /// Append the record of the file whose line begins at `begin`.
    fn put_identity(&mut self, status: &Status, begin: usize) -> Outcome<()> {
        let offset = u32::try_from(begin).map_err(|_| Errno::NOMEM)?;
        let records = &mut self.identities;
        reserve(records, RECORD)?;
        records.extend_from_slice(identity(status).as_flattened());
        for narrow in [
            status.links,
            offset,
            status.mode,
            status.user,
            status.group,
            0,
        ] {
            records.extend_from_slice(&narrow.to_le_bytes());
        }
        Ok(())
    }
}

/// Return device, inode, size, mtime and ctime, which identify one state of one file.
pub(crate) fn identity(status: &Status) -> [[u8; 8]; 5] {
    [
        status.device.to_le_bytes(),
        status.inode.to_le_bytes(),
        status.size.to_le_bytes(),
        line::nearest_nanoseconds(status.mtime).to_le_bytes(),
        line::nearest_nanoseconds(status.ctime).to_le_bytes(),
    ]
}
