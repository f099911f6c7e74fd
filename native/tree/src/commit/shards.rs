//! A commit in parts: one scan for each shard, and one for everything else.
//!
//! A shard is a directory with everything below it.  Its tree depends on nothing else, so the
//! scan above it takes it over by its id.  Only files with names in several parts need
//! another look, when all parts are done: their leader may be in another part.

use std::collections::BTreeMap;

use huai_format::amend::{Amendment, amend};
use huai_format::entries::digests::is_zero;
use huai_format::entries::put_link;
use huai_format::limits::DIGEST_BYTES;
use huai_format::path::{RelPath, basename, order_key, parent};
use huai_format::snapshots::{Lookup, ObjectReader, ObjectWriter, Snapshot};
use huai_git::error::Result;
use huai_git::find::split_before;
use huai_git::oid::Oid;

use crate::scan::directory::{Frame, Reason, View};
use crate::scan::hardlinks::split_link;
use crate::scan::linked::put_pair;

/// The part of a tree that one scan reads: the directory at `top`, less the shards.
pub struct Part<R> {
    /// The path of the top directory; empty for the root.
    pub top: Vec<u8>,
    /// The results of the shards below it, by path.
    pub shards: BTreeMap<Vec<u8>, Shard>,
    /// The reader of their objects; `None` without shards.
    pub objects: Option<Snapshot<R>>,
}

/// The result of a shard.
#[derive(Debug, Clone, Copy)]
pub struct Shard {
    /// The directory that its scan saw.
    pub view: View,
    /// The id of its tree and the number of its entries; `None` if its scan failed.
    pub tree: Option<(Oid, u64)>,
}

impl<R> Default for Part<R> {
    fn default() -> Self {
        Self {
            top: Vec::new(),
            shards: BTreeMap::new(),
            objects: None,
        }
    }
}

impl<R> Part<R> {
    /// Return the frame; an unreadable one for a shard without a result, or with that of another directory.
    pub(super) fn judge(&self, frame: Frame) -> Frame {
        let Frame::Shard { path, view } = frame else {
            return frame;
        };
        let shard = self.shards.get(&path);
        let reason = match shard.map(|shard| (shard.tree, shard.view.fits(view))) {
            Some((Some(_), true)) => return Frame::Shard { path, view },
            Some((Some(_), false)) => Reason::OtherView,
            Some((None, _)) | None => Reason::NoResult,
        };
        Frame::Unreadable { path, reason }
    }
}

/// A name of a file that has names in several parts.
struct Name {
    path: RelPath,
    /// The line without hardlink field and LF.
    line: Vec<u8>,
    has_link: bool,
    digest: Vec<u8>,
}

impl Name {
    /// Look up the leaf at `path`; `None` if it is missing.
    fn find<R: ObjectReader>(past: &mut Lookup<R>, path: &RelPath) -> Result<Option<Self>> {
        Ok(past.leaf(path)?.map(|(line, digest)| {
            let (alone, has_link) = split_link(&line);
            Self {
                path: path.clone(),
                line: alone.to_vec(),
                has_link,
                digest: digest.to_vec(),
            }
        }))
    }

    /// True if both names have the same attributes and digest; a digest that only one of them has is ignored.
    fn equals(&self, other: &Self) -> bool {
        let same_digest =
            self.digest == other.digest || is_zero(&self.digest) || is_zero(&other.digest);
        split_before(&self.line, b'\t').1 == split_before(&other.line, b'\t').1 && same_digest
    }
}

/// Set the hardlink fields of files with names in several parts of `past`, the new tree.
///
/// `groups` has all names of each file; those that `past` lacks are ignored.  The first in tree order leads; a name
/// with other attributes or content gets no link.  Returns the id of the amended tree, and the pairs of leaders and
/// members as `linked` records them.
pub fn relink<R: ObjectReader>(
    past: &mut Lookup<R>,
    groups: Vec<Vec<RelPath>>,
    writer: &mut impl ObjectWriter,
) -> Result<(Oid, Vec<u8>)> {
    let mut pairs = Vec::new();
    let mut amendments: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Name>> = BTreeMap::new();
    for mut paths in groups {
        paths.sort_by_cached_key(|path| {
            let path = path.as_bytes();
            (order_key(parent(path)), basename(path).to_vec())
        });
        let mut leader: Option<Name> = None;
        for path in paths {
            let Some(mut name) = Name::find(past, &path)? else {
                continue;
            };
            let Some(leader) = &leader else {
                leader = Some(name);
                continue;
            };
            let is_linked = name.equals(leader);
            if is_linked {
                let above = parent(path.as_bytes());
                put_link(&mut name.line, above, leader.path.as_bytes());
                put_pair(&mut pairs, leader.path.as_bytes(), path.as_bytes());
            }
            if is_linked || name.has_link {
                let above = order_key(parent(path.as_bytes()));
                let names = amendments.entry(above).or_default();
                names.insert(basename(path.as_bytes()).to_vec(), name);
            }
        }
    }
    let mut list = Vec::with_capacity(amendments.len());
    for names in amendments.values() {
        list.extend(amendment(past, names)?);
    }
    let amended = amend(&past.snapshot(), past.limit(), &list, writer)?;
    Ok((amended.tree, pairs))
}

/// Return the amendment of the directory that has these leaves; `None` without leaves, or if the
/// directory is missing.
fn amendment<R: ObjectReader>(
    past: &mut Lookup<R>,
    names: &BTreeMap<Vec<u8>, Name>,
) -> Result<Option<Amendment>> {
    let Some((_, first)) = names.first_key_value() else {
        return Ok(None);
    };
    let above = RelPath::trusted(parent(first.path.as_bytes()).to_vec());
    let Some(listing) = past.listing(&above)? else {
        return Ok(None);
    };
    let mut amendment = Amendment {
        path: above.as_bytes().to_vec(),
        attributes: listing.attributes.to_vec(),
        ..Amendment::default()
    };
    for name in names.values() {
        amendment.leaves.extend_from_slice(&name.line);
        amendment.leaves.push(b'\n');
        let end = amendment.digests.len() + DIGEST_BYTES;
        amendment.digests.extend_from_slice(&name.digest);
        amendment.digests.resize(end, 0);
    }
    Ok(Some(amendment))
}
