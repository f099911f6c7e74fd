//! The file lists of Fedora's mirrors, as `create-filelist` of quick-fedora-mirror writes them.
//!
//! Entries that only the group can read are marked; unreadable ones are left out with everything
//! below.  Names that no line can hold or no reader accepts are left out too: those with control
//! characters, and those that are not UTF-8.

use std::io::Write;

use huai_format::entries::{Body, Entry, Leaves, decode_directory};
use huai_format::path::{RelPath, basename, is_within};
use huai_format::snapshots::Listing;
use huai_git::error::Result;

use super::{Exported, seconds};

const GROUP_READS: u16 = 0o040;
const OTHERS_READ: u16 = 0o004;
/// The prefix that NFS gives to a deleted file that is still open.
const DELETED_OVER_NFS: &[u8] = b".nfs";

/// The content of a line.
#[derive(Debug, Clone)]
pub enum Rows {
    /// Time, type, size and path.
    Times,
    /// The path alone, if it ends with one of these suffixes; an empty list allows any.
    Names(Vec<Vec<u8>>),
}

/// A formatter of the lines of a list, from directories in tree order.
#[derive(Debug)]
pub struct FileList {
    rows: Rows,
    exported: Exported,
    /// The directory below which nothing is listed.
    hidden: Option<Vec<u8>>,
    /// The directory below which others have no access.
    restricted: Option<Vec<u8>>,
    left_out: u64,
}

impl FileList {
    /// List everything but `exported`.
    pub fn new(rows: Rows, exported: Exported) -> Self {
        Self {
            rows,
            exported,
            hidden: None,
            restricted: None,
            left_out: 0,
        }
    }

    /// Return the number of names that no line can hold; a directory counts once.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Append the lines of the next directory to `out`, without exported files and what is not listed; none below a
    /// hidden one.
    pub fn put_listing(&mut self, listing: &Listing, out: &mut Vec<u8>) -> Result<()> {
        let path = &listing.path;
        if !path.is_root() && !self.enter(listing, out)? {
            return Ok(());
        }
        for leaf in Leaves::new(path, &listing.leaves, b"") {
            let leaf = leaf?;
            if !self.exported.names(path, &leaf.name) && self.is_listed(&leaf.name, leaf.mode) {
                self.put_row(path, &leaf, out);
            }
        }
        Ok(())
    }

    /// Append the line of a directory, not the root, unless exported files are in it; returns false if it is hidden
    /// with its entries.
    fn enter(&mut self, listing: &Listing, out: &mut Vec<u8>) -> Result<bool> {
        let path = listing.path.as_bytes();
        let is_outside = |directory: &mut Vec<u8>| !is_within(path, directory);
        self.hidden.take_if(is_outside);
        if self.hidden.is_some() {
            return Ok(false);
        }
        self.restricted.take_if(is_outside);
        let entry = decode_directory(&listing.path, &listing.attributes)?;
        if !self.is_listed(basename(path), entry.mode) {
            self.hidden = Some(path.to_vec());
            return Ok(false);
        }
        if !self.exported.holds(path) {
            self.put_row(&listing.path, &entry, out);
        }
        if entry.mode & OTHERS_READ == 0 && self.restricted.is_none() {
            self.restricted = Some(path.to_vec());
        }
        Ok(true)
    }

    /// Return true if an entry is listed: the group can read it, and NFS does not keep it after its
    /// deletion.  Also false for a name that no line can hold, which is counted.
    fn is_listed(&mut self, name: &[u8], mode: u16) -> bool {
        if mode & GROUP_READS == 0 || name.starts_with(DELETED_OVER_NFS) {
            return false;
        }
        let fits = std::str::from_utf8(name).is_ok_and(|text| !text.contains(char::is_control));
        self.left_out = self.left_out.saturating_add(u64::from(!fits));
        fits
    }

    /// Append the line of an entry unless its suffix excludes it.  `path` is the directory of a
    /// leaf; an entry without a name is the directory `path` itself.
    fn put_row(&self, path: &RelPath, entry: &Entry<'_>, out: &mut Vec<u8>) {
        match &self.rows {
            Rows::Times => {
                let (kind, size) = match &entry.body {
                    Body::File { size, .. } => ('f', *size),
                    Body::Directory => ('d', 0),
                    Body::Symlink { target } => ('l', target.len().try_into().unwrap_or(u64::MAX)),
                };
                let mark = match self.restricted {
                    _ if entry.mode & OTHERS_READ == 0 => "-",
                    Some(_) => "*",
                    None => "",
                };
                // A first copy uses times from 0 on.
                let time = seconds(entry.mtime).max(0);
                // Writing to a vector cannot fail.
                let _ = write!(out, "{time}\t{kind}{mark}\t{size}\t");
            }
            Rows::Names(endings) => {
                let last = if entry.name.is_empty() {
                    path.as_bytes()
                } else {
                    &entry.name
                };
                if !endings.is_empty() && !endings.iter().any(|ending| last.ends_with(ending)) {
                    return;
                }
                out.extend_from_slice(b"./");
            }
        }
        out.extend_from_slice(path.as_bytes());
        if !entry.name.is_empty() {
            if !path.is_root() {
                out.push(b'/');
            }
            out.extend_from_slice(&entry.name);
        }
        out.push(b'\n');
    }
}
