//! Reads the leaves of a listing one by one, with their digests.

use std::collections::BTreeSet;

use huai_git::error::Result;
use huai_git::find::split_before;

use crate::escape::unescape;
use crate::limits::DIGEST_BYTES;
use crate::write::is_file;

/// The line of a leaf, and its digest; that of a file without one may be zeros.
pub(super) type Fields<'a> = (&'a [u8], Option<&'a [u8]>);

/// The next leaf of a listing.
pub(super) struct Leaf<'a> {
    /// Unescaped.
    pub(super) name: Vec<u8>,
    pub(super) line: &'a [u8],
    pub(super) digest: Option<&'a [u8]>,
}

impl<'a> Leaf<'a> {
    /// Return the line and the digest.
    pub(super) fn fields(&self) -> Fields<'a> {
        (self.line, self.digest)
    }
}

/// A reader of sorted leaves.
pub(super) struct LeafReader<'a> {
    text: &'a [u8],
    digests: std::slice::ChunksExact<'a, u8>,
    pub(super) leaf: Option<Leaf<'a>>,
}

impl<'a> LeafReader<'a> {
    /// Begin at the first of the sorted lines of `text`; `digests` is their column, or empty.
    /// Fails here or later for a name with a wrong escape.
    pub(super) fn new(text: &'a [u8], digests: &'a [u8]) -> Result<Self> {
        let mut reader = Self {
            text,
            digests: digests.chunks_exact(DIGEST_BYTES),
            leaf: None,
        };
        reader.advance()?;
        Ok(reader)
    }

    /// Make `leaf` the next leaf, if there is one.
    fn advance(&mut self) -> Result<()> {
        self.leaf = None;
        if self.text.is_empty() {
            return Ok(());
        }
        let (line, _) = split_before(self.text, b'\n');
        let end = line.len().saturating_add(1).min(self.text.len());
        let (line, rest) = self.text.split_at(end);
        self.text = rest;
        let (name, fields) = split_before(line, b'\t');
        let digest = is_file(fields).then(|| self.digests.next()).flatten();
        let name = unescape(name)?.into_owned();
        self.leaf = Some(Leaf { name, line, digest });
        Ok(())
    }

    /// Return the leaf and advance to the next one; `None`, without an advance, unless `is_wanted`.
    pub(super) fn take_if(&mut self, is_wanted: bool) -> Result<Option<Leaf<'a>>> {
        if !is_wanted {
            return Ok(None);
        }
        let leaf = self.leaf.take();
        self.advance()?;
        Ok(leaf)
    }
}

/// Return the unescaped names of leaves.  Fails for a wrong escape.
pub(super) fn names(leaves: &[u8]) -> Result<BTreeSet<Vec<u8>>> {
    let lines = leaves
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| Ok(unescape(split_before(line, b'\t').0)?.into_owned()))
        .collect()
}
