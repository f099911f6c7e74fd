//! Finds hardlink groups in a scan.
//!
//! A leader is the first name of its group in tree order, which is the order of the scan.  Each
//! later name gets a field that refers to the leader, unless the file was changed between the two
//! readings.  An inode is forgotten after its last name, so memory holds only groups with
//! further names.

use std::collections::{BTreeSet, HashMap};

use huai_format::entries::digests::is_zero;
use huai_format::entries::put_link;
use huai_format::escape::unescape;
use huai_format::limits::DIGEST_BYTES;
use huai_format::path::RelPath;
use huai_git::find::split_before;

use super::directory::{Directory, LINKS, OFFSET, RECORD, inode, word};
use super::linked::put_pair;

/// File system and inode.
pub type Inode = [u8; 16];
/// The beginning of a hardlink field.
pub(crate) const LINK: &[u8] = b"\th";

/// Return the line of a file without its hardlink field and LF, and true if it has that field.
pub(crate) fn split_link(line: &[u8]) -> (&[u8], bool) {
    let end = line.windows(LINK.len()).rposition(|part| part == LINK);
    let alone = line.get(..end.unwrap_or(line.len())).unwrap_or_default();
    (alone.strip_suffix(b"\n").unwrap_or(alone), end.is_some())
}

/// The fields that all names of a file share.
#[derive(Debug, Clone, Copy)]
pub struct State<'a> {
    /// The line without the name and the hardlink field.
    pub fields: &'a [u8],
    /// The digest; empty or all zeros if unknown.
    pub digest: &'a [u8],
}

/// The groups of one scan, whose directories come in tree order.
#[derive(Debug, Default)]
pub struct HardlinkGroups {
    open: HashMap<Inode, Group>,
    by_leader: HashMap<Vec<u8>, Inode>,
    /// The pairs of leaders and members, as `linked` records them.
    pairs: Vec<u8>,
}

#[derive(Debug)]
struct Group {
    leader: Vec<u8>,
    fields: Vec<u8>,
    digest: Vec<u8>,
    unseen: u32,
}

impl HardlinkGroups {
    /// Set the hardlink fields of a directory's leaves, after its digests; directories come in tree order.  Names in
    /// `unsure` get none, nor those with another state than their leader.
    pub fn resolve(&mut self, directory: &mut Directory, unsure: &BTreeSet<Vec<u8>>) {
        if !directory.hardlinks {
            return;
        }
        if let Some(leaves) = self.resolved(directory, unsure) {
            directory.leaves = leaves;
        }
    }

    /// Return the changed leaves, `None` if they stay unchanged, as those in `unsure` do; adds each leader with its
    /// member to the pairs.
    fn resolved(&mut self, seen: &Directory, unsure: &BTreeSet<Vec<u8>>) -> Option<Vec<u8>> {
        let mut leaves = Vec::new();
        let mut copied = 0;
        for (number, record) in seen.identities.chunks_exact(RECORD).enumerate() {
            let links = word(record, LINKS);
            if links < 2 {
                continue;
            }
            let begin = word(record, OFFSET) as usize;
            let line = split_before(seen.leaves.get(begin..)?, b'\n').0;
            let name = split_before(line, b'\t').0;
            let raw = unescape(name).ok()?;
            if unsure.contains(&*raw) {
                continue;
            }
            let place = number * DIGEST_BYTES;
            let state = State {
                fields: line.get(name.len()..)?,
                digest: seen.digests.get(place..place + DIGEST_BYTES).unwrap_or(b""),
            };
            let inode = inode(seen, record)?;
            let path = RelPath::trusted(seen.path.clone()).join(&raw);
            if let Some(leader) = self.leader(inode, path.as_bytes(), &state, links) {
                let end = begin + line.len();
                leaves.extend_from_slice(seen.leaves.get(copied..end)?);
                put_link(&mut leaves, &seen.path, &leader);
                put_pair(&mut self.pairs, &leader, path.as_bytes());
                copied = end;
            }
        }
        if copied == 0 {
            return None;
        }
        leaves.extend_from_slice(seen.leaves.get(copied..)?);
        Some(leaves)
    }

    /// Return the pairs found since the last call (`linked`).
    pub fn take_pairs(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pairs)
    }

    /// Return the inode and the leader of each file with names that were not seen.
    pub fn open(self) -> impl Iterator<Item = (Inode, Vec<u8>)> {
        let open = self.open.into_iter();
        open.map(|(inode, group)| (inode, group.leader))
    }

    /// Return true if all names of each file were seen.
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    /// Return true if `path` leads an open group in `state`.
    pub fn leads(&self, path: &[u8], state: &State<'_>) -> bool {
        let inode = self.by_leader.get(path);
        let group = inode.and_then(|inode| self.open.get(inode));
        group.is_some_and(|group| group.has_state(state))
    }

    /// Count a name of a file; returns its leader, `None` for the first name or after a change.
    fn leader(
        &mut self,
        inode: Inode,
        path: &[u8],
        state: &State<'_>,
        links: u32,
    ) -> Option<Vec<u8>> {
        let Some(group) = self.open.get_mut(&inode) else {
            self.by_leader.insert(path.to_vec(), inode);
            self.open.insert(inode, Group::new(path, state, links));
            return None;
        };
        group.unseen = group.unseen.saturating_sub(1);
        let leader = group.has_state(state).then(|| group.leader.clone());
        if group.unseen == 0 {
            self.by_leader.remove(&group.leader);
            self.open.remove(&inode);
        }
        leader
    }
}

impl Group {
    fn new(leader: &[u8], state: &State<'_>, links: u32) -> Self {
        Self {
            leader: leader.to_vec(),
            fields: state.fields.to_vec(),
            digest: state.digest.to_vec(),
            unseen: links.saturating_sub(1),
        }
    }

    /// Return true if the state equals `other`; a digest that only one side has is ignored.
    fn has_state(&self, other: &State<'_>) -> bool {
        let same_digest =
            self.digest == other.digest || is_zero(&self.digest) || is_zero(other.digest);
        self.fields == other.fields && same_digest
    }
}
