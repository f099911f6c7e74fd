//! Digests that were found out after their files were committed.
//!
//! Rule: a digest counts as long as all is the same that a line says of its file, but for the path
//! and the group of hardlinks: a link has the digest of its leader.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::entry::{Body, Digest, Entry};
use crate::error::Result;
use crate::limits::DIGEST_BYTES;
use crate::line::Leaves;
use crate::path::RelPath;
use crate::undigested::lacks;

/// Files as they were when they were read, by path.
#[derive(Debug, Default)]
pub struct FoundDigests(HashMap<RelPath, Entry<'static>>);

impl FoundDigests {
    /// How many files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the files of a directory that have a digest.
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
                self.0.insert(path, alone(&leaf).into_owned());
            }
        }
        Ok(())
    }

    /// The digest column of a directory with those that it lacks; None: none of them is here.
    pub fn fill(
        &self,
        directory: &RelPath,
        leaves: &[u8],
        digests: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        if !lacks(digests) {
            return Ok(None);
        }
        let mut column = Vec::new();
        let mut has_more = false;
        for leaf in Leaves::new(directory, leaves, digests) {
            let leaf = leaf?;
            let Body::File { link, digest, .. } = &leaf.body else {
                continue;
            };
            let found = digest
                .is_none()
                .then(|| self.digest_of(directory, &leaf, link.as_ref()));
            let found = found.flatten();
            has_more |= found.is_some();
            column.extend_from_slice(&digest.or(found).unwrap_or([0; DIGEST_BYTES]));
        }
        Ok(has_more.then_some(column))
    }

    fn digest_of(
        &self,
        directory: &RelPath,
        leaf: &Entry<'_>,
        link: Option<&RelPath>,
    ) -> Option<Digest> {
        let own = self.0.get(&directory.join(&leaf.name));
        let found = own.or_else(|| self.0.get(link?))?;
        match found.body {
            Body::File { digest, .. } if !found.differs(&alone(leaf)) => digest,
            _ => None,
        }
    }
}

/// The file of a line without its name and its group.
fn alone<'a>(leaf: &Entry<'a>) -> Entry<'a> {
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

    fn found() -> FoundDigests {
        let mut found = FoundDigests::default();
        let digests = [ONE, NONE, TWO].concat();
        let there = b"a\t1\t5\nb\t2\t9\nc\t4\t7\n";
        found.gather(&RelPath::default(), there, &digests).unwrap();
        found
            .gather(&RelPath::trusted(b"x".to_vec()), b"e\t8\t5\n", b"")
            .unwrap();
        assert_eq!(found.len(), 2);
        found
    }

    fn filled(path: &[u8], leaves: &[u8], digests: &[u8]) -> Option<Vec<u8>> {
        let path = RelPath::trusted(path.to_vec());
        found().fill(&path, leaves, digests).unwrap()
    }

    #[test]
    fn what_is_as_it_was_gets_its_digest() {
        let there = b"a\t1\t5\nb\t2\t9\nc\t4\t7\n";
        let three = [ONE, NONE, TWO].concat();
        assert_eq!(filled(b"", there, b""), Some(three));
        let kept = [[3; 32], NONE, TWO].concat();
        assert_eq!(
            filled(b"", there, &[[3; 32], NONE, NONE].concat()),
            Some(kept)
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
        assert!(found().fill(&RelPath::default(), b"?", b"").is_err());
        assert!(found().gather(&RelPath::default(), b"?", &ONE).is_err());
    }
}
