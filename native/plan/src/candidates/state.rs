//! Wanted states from the entries of a snapshot.

use huai_format::entries::{Body, Entry};
use huai_format::path::RelPath;

use super::table::{Candidates, EntryKind, Span, Stated, StatedMode, TableFull};
use crate::selection::Modes;

impl Candidates {
    /// Make the state of an entry with its mode changed by `modes`; adds its owners to the table,
    /// and its texts unless `known` has the same.
    pub fn state(
        &mut self,
        entry: &Entry<'_>,
        modes: Modes,
        known: Option<&Stated>,
    ) -> Result<Stated, TableFull> {
        let (kind, size, other, digest): (_, _, &[u8], &[u8]) = match &entry.body {
            Body::File { size, link, digest } => {
                let link = link.as_ref().map_or(&b""[..], RelPath::as_bytes);
                let digest = digest.as_ref().map_or(&b""[..], |digest| digest);
                (EntryKind::File, *size, link, digest)
            }
            Body::Directory => (EntryKind::Directory, 0, b"", b""),
            Body::Symlink { target } => (EntryKind::Symlink, 0, target, b""),
        };
        let mut put = |bytes: &[u8], known: Option<Span>| {
            if bytes.is_empty() {
                return Ok(Span::default());
            }
            self.add_text_once(bytes, [known, None])
        };
        let other = put(other, known.map(|known| known.other))?;
        let digest = put(digest, known.map(|known| known.digest))?;
        Ok(Stated {
            kind,
            mode: mode(modes, entry),
            owner: self.owner(&entry.owner),
            group: self.owner(&entry.group),
            mtime: entry.mtime,
            size,
            other,
            digest,
        })
    }
}

/// Apply a mode policy to the stated mode; that of a symlink stays.
fn mode(modes: Modes, entry: &Entry<'_>) -> StatedMode {
    let rule = match entry.body {
        Body::File { .. } => modes.file,
        Body::Directory => modes.directory,
        Body::Symlink { .. } => {
            return StatedMode {
                bits: entry.mode,
                stated: entry.mode,
                kept: false,
            };
        }
    };
    let bits = entry.mode & rule.kept | rule.set;
    let is_reduced = !modes.local && rule.set == 0;
    StatedMode {
        bits,
        stated: if is_reduced { entry.mode } else { bits },
        kept: modes.local,
    }
}
