//! Digests that were computed after their files were committed.
//!
//! Rule: a digest counts as long as all fields of its line are the same, except the path and the
//! hardlink group: a link has the digest of its leader.

use std::borrow::Cow;
use std::collections::HashMap;

use huai_git::error::Result;

use super::undigested::lacks_digest;
use crate::entries::{Body, Digest, Entry, Leaves};
use crate::limits::DIGEST_BYTES;
use crate::path::RelPath;

/// Files as they were when they were hashed, by path.
#[derive(Debug, Default)]
pub struct FoundDigests(HashMap<RelPath, Entry<'static>>);

impl FoundDigests {
    /// Return the number of files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Return true if there are no files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Add the files of a directory that have a digest.
    pub fn gather(&mut self, directory: &RelPath, leaves: &[u8], digests: &[u8]) -> Result<()> {
        if digests.is_empty() {
            return Ok(());
        }
        for leaf in Leaves::new(directory, leaves, digests) {
            let leaf = leaf?;
            if let Body::File {
                digest: Some(_), ..
            } = leaf.body
            {
                let path = directory.join(&leaf.name);
                self.0.insert(path, without_paths(&leaf).into_owned());
            }
        }
        Ok(())
    }

    /// Return a directory's digest column with the digests found here in place of absent ones, for unchanged files
    /// and their links; `None` if this adds nothing.
    pub fn fill(
        &self,
        directory: &RelPath,
        leaves: &[u8],
        digests: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        if !lacks_digest(digests) {
            return Ok(None);
        }
        let mut column = Vec::new();
        let mut has_more = false;
        for leaf in Leaves::new(directory, leaves, digests) {
            let leaf = leaf?;
            let Body::File { link, digest, .. } = &leaf.body else {
                continue;
            };
            let known_digest = digest
                .is_none()
                .then(|| self.digest_of(directory, &leaf, link.as_ref()));
            let known_digest = known_digest.flatten();
            has_more |= known_digest.is_some();
            column.extend_from_slice(&digest.or(known_digest).unwrap_or([0; DIGEST_BYTES]));
        }
        Ok(has_more.then_some(column))
    }

    /// Return the digest that was found for a leaf or its leader; `None` without one, or if the
    /// file has changed.
    fn digest_of(
        &self,
        directory: &RelPath,
        leaf: &Entry<'_>,
        link: Option<&RelPath>,
    ) -> Option<Digest> {
        let own = self.0.get(&directory.join(&leaf.name));
        let file = own.or_else(|| self.0.get(link?))?;
        match file.body {
            Body::File { digest, .. } if !file.differs(&without_paths(leaf)) => digest,
            _ => None,
        }
    }
}

/// Return an entry without its name and the leader of its hardlink group.
fn without_paths<'a>(leaf: &Entry<'a>) -> Entry<'a> {
    let mut file = leaf.clone();
    file.name = Cow::Borrowed(b"");
    if let Body::File { link, .. } = &mut file.body {
        *link = None;
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 32] = [1; 32];
    const TWO: [u8; 32] = [2; 32];
    const NONE: [u8; 32] = [0; 32];

    fn digests_of_three() -> FoundDigests {
        let mut digests = FoundDigests::default();
        let column = [ONE, NONE, TWO].concat();
        let lines = b"a\t1\t5\nb\t2\t9\nc\t4\t7\n";
        digests.gather(&RelPath::default(), lines, &column).unwrap();
        digests
            .gather(&RelPath::trusted(b"x".to_vec()), b"e\t8\t5\n", b"")
            .unwrap();
        assert_eq!(digests.len(), 2);
        digests
    }

    fn filled(path: &[u8], leaves: &[u8], digests: &[u8]) -> Option<Vec<u8>> {
        let path = RelPath::trusted(path.to_vec());
        digests_of_three().fill(&path, leaves, digests).unwrap()
    }

    #[test]
    fn what_is_as_it_was_gets_its_digest() {
        let lines = b"a\t1\t5\nb\t2\t9\nc\t4\t7\n";
        let three = [ONE, NONE, TWO].concat();
        assert_eq!(filled(b"", lines, b""), Some(three));
        let column = [[3; 32], NONE, TWO].concat();
        assert_eq!(
            filled(b"", lines, &[[3; 32], NONE, NONE].concat()),
            Some(column)
        );
    }

    #[test]
    fn a_link_gets_that_of_its_leader() {
        assert_eq!(filled(b"x", b"e\t1\t5\th../a\n", b""), Some(ONE.to_vec()));
        assert_eq!(filled(b"x", b"e\t1\t5\th../c\n", b""), None);
    }

    #[test]
    fn what_changed_or_is_elsewhere_gets_none() {
        for leaves in [
            &b"a\t1\t6\n"[..],
            b"a\t2\t5\n",
            b"a\t1\t5\tm600\n",
            b"b\t2\t9\n",
        ] {
            assert_eq!(filled(b"", leaves, b""), None);
        }
        assert_eq!(filled(b"x", b"a\t1\t5\n", b""), None);
        assert_eq!(filled(b"", b"c\t>a\t7\n", b""), None);
        assert_eq!(filled(b"", b"a\t1\t5\n", &[3; 32]), None);
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        assert!(
            digests_of_three()
                .fill(&RelPath::default(), b"?", b"")
                .is_err()
        );
        assert!(
            digests_of_three()
                .gather(&RelPath::default(), b"?", &ONE)
                .is_err()
        );
    }
}
