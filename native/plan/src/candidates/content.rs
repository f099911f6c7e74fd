//! Decides if a local file has the wanted content, from its attributes and known digests.

use super::differing::Attribute;
use super::table::{Candidates, EntryKind, LocalStatus, Row, Span, Stated};

impl Candidates {
    /// Return the positions of rows, in order, with files that have to be hashed to decide about their content.
    pub fn unhashed(&self) -> impl Iterator<Item = usize> {
        let rows = self.rows().iter().enumerate();
        let unhashed = rows.filter(|(_, row)| self.is_worth_hashing(row));
        unhashed.map(|(place, _)| place)
    }

    /// Return true if only hashing the local file can decide about its content: never for hardlinks, and under the
    /// wanted time only if an earlier snapshot has other content for it.
    fn is_worth_hashing(&self, row: &Row) -> bool {
        let Some((seen, wanted)) = self.files(row) else {
            return false;
        };
        let is_known = !row.digest.is_empty() || wanted.digest.is_empty();
        if is_known || wanted.is_linked() || seen.size != wanted.size {
            return false;
        }
        if seen.mtime == wanted.mtime {
            let differs = |digest: Span| self.bytes(digest) != self.bytes(wanted.digest);
            let mut digests = self.matching(row, seen);
            return digests.any(|digest| !digest.is_empty() && differs(digest));
        }
        self.known_digest(row).is_none()
    }

    /// Return true if the local file has the wanted content, so that no transfer is needed.
    ///
    /// A known local digest decides.  Otherwise the size has to be right, and either the
    /// time too (rsync's rule), or an earlier snapshot has the wanted digest for this size and
    /// time.
    pub fn has_content(&self, row: &Row) -> bool {
        let Some((seen, wanted)) = self.files(row) else {
            return false;
        };
        if seen.size != wanted.size {
            return false;
        }
        if !row.digest.is_empty() {
            return self.bytes(row.digest) == self.bytes(wanted.digest);
        }
        if seen.mtime == wanted.mtime {
            return true;
        }
        let local_digest = self.known_digest(row);
        local_digest.is_some_and(|digest| digest == self.bytes(wanted.digest))
    }

    /// Return the digest of the local file, if it was hashed, or all earlier snapshots with its
    /// size and time state the same one; else `None`.
    pub fn known_digest(&self, row: &Row) -> Option<&[u8]> {
        if !row.digest.is_empty() {
            return Some(self.bytes(row.digest));
        }
        let local = self.local(row);
        let status = local
            .status()
            .filter(|_| local.kind() == Some(EntryKind::File))?;
        let mut digests = self.matching(row, status).map(|digest| self.bytes(digest));
        let first = digests.next()?;
        (digests.all(|digest| digest == first) && !first.is_empty()).then_some(first)
    }

    /// Return true if the row wants a regular file, not a hardlink to another path, and this file
    /// gets another inode: its content differs, or it leaves a group.
    pub fn replaces(&self, row: &Row) -> bool {
        row.wanted
            .is_some_and(|wanted| wanted.is_file() && !wanted.is_linked())
            && (row.differing.has(Attribute::Link) || !self.has_content(row))
    }

    /// Return the digests of earlier snapshots for the file's present size and time, also empty
    /// ones.
    fn matching<'a>(&'a self, row: &'a Row, seen: &'a LocalStatus) -> impl Iterator<Item = Span> {
        let same =
            |each: &&Stated| each.is_file() && (each.size, each.mtime) == (seen.size, seen.mtime);
        let past = self.past(row).iter();
        past.filter(same).map(|each| each.digest)
    }

    /// Return local status and wanted state of a row; `None` unless both are regular files.
    fn files<'a>(&'a self, row: &'a Row) -> Option<(&'a LocalStatus, &'a Stated)> {
        let local = self.local(row);
        let status = local
            .status()
            .filter(|_| local.kind() == Some(EntryKind::File))?;
        let state = row.wanted.as_ref().filter(|wanted| wanted.is_file())?;
        Some((status, state))
    }
}
