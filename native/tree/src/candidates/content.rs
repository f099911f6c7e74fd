//! Whether a local file has the wanted content, by what is known of it.

use super::table::{Candidates, Kind, Row, Seen, Span, Stated};
use crate::compare::differing::Attribute;

impl Candidates {
    /// The places of the files of which only the content can tell if it is the wanted one.
    pub fn unhashed(&self) -> impl Iterator<Item = usize> {
        let rows = self.rows().iter().enumerate();
        let unhashed = rows.filter(|(_, row)| self.is_worth_hashing(row));
        unhashed.map(|(place, _)| place)
    }

    /// Whether only reading the local file can tell if its content is the wanted one.
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
            let mut known = self.matching(row, seen);
            return known.any(|digest| !digest.is_empty() && differs(digest));
        }
        self.known_digest(row).is_none()
    }

    /// Whether the local file has the wanted content, so that nothing need be fetched.
    ///
    /// If the local digest is known, it decides.  Else the size has to be right, and either the
    /// time, too (rsync's own rule), or an earlier snapshot has the wanted digest for this size and
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
        let known = self.known_digest(row);
        known.is_some_and(|digest| digest == self.bytes(wanted.digest))
    }

    /// The digest of the local file: it was read, or all earlier snapshots have the same one.
    pub fn known_digest(&self, row: &Row) -> Option<&[u8]> {
        if !row.digest.is_empty() {
            return Some(self.bytes(row.digest));
        }
        let here = self.here(row);
        let seen = here.seen().filter(|_| here.kind() == Some(Kind::File))?;
        let mut known = self.matching(row, seen).map(|digest| self.bytes(digest));
        let first = known.next()?;
        (known.all(|digest| digest == first) && !first.is_empty()).then_some(first)
    }

    /// Whether a regular file, first of its hardlink group, gets another inode.
    pub fn replaces(&self, row: &Row) -> bool {
        row.wanted
            .is_some_and(|wanted| wanted.is_file() && !wanted.is_linked())
            && (row.differing.has(Attribute::Link) || !self.has_content(row))
    }

    /// Digests of the earlier snapshots that have the file's present size and time.
    fn matching<'a>(&'a self, row: &'a Row, seen: &'a Seen) -> impl Iterator<Item = Span> {
        let same =
            |each: &&Stated| each.is_file() && (each.size, each.mtime) == (seen.size, seen.mtime);
        let past = self.past(row).iter();
        past.filter(same).map(|each| each.digest)
    }

    /// A file that is there, where a file is wanted.
    fn files<'a>(&'a self, row: &'a Row) -> Option<(&'a Seen, &'a Stated)> {
        let here = self.here(row);
        let seen = here.seen().filter(|_| here.kind() == Some(Kind::File))?;
        let wanted = row.wanted.as_ref().filter(|wanted| wanted.is_file())?;
        Some((seen, wanted))
    }
}
