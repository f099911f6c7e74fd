//! Compares a wanted entry with the local entry at its path.

use huai_format::entries::{Body, Entry};
use huai_format::path::RelPath;
use huai_git::error::Result;
use huai_plan::candidates::{Attribute, AttributeSet, EntryKind, LocalStatus};
use huai_sys::attributes::{self, Mode};
use huai_sys::call::Outcome;

use super::difference::{self, differences};
use super::findings::FindingSink;
use super::local::look;
use super::place::{Place, failed};
use crate::walk::numbers::NumberOf;
use crate::walk::owners::OwnerKind;

impl Place {
    /// Compare a wanted entry with the local one, and count it; reports a difference, and a file whose content is to
    /// be read.  A local inode that another group has too is a difference of the link.
    pub(super) fn compare_entry(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        seen: &LocalStatus,
        target: &[u8],
        number_of: &NumberOf<'_>,
        to: &mut impl FindingSink,
    ) -> Result<()> {
        let entry = wanted.1;
        let differing = self.differences(entry, seen, target, number_of);
        let mut differing = differing.map_err(|errno| failed(wanted.0.as_bytes(), errno))?;
        if let (Body::File { link: None, .. }, 2..) = (&entry.body, seen.links) {
            // One local inode for two groups of the snapshot: a change of one would change both.
            let is_new = self.inodes.insert((seen.device, seen.inode));
            differing.add_if(Attribute::Link, !is_new);
        }
        self.count(wanted, to.records());
        if !differing.is_empty() || (self.options.content && is_worth_reading(entry, differing)) {
            let added = to.add_match(wanted, differing, seen, target);
            added.map_err(|errno| failed(wanted.0.as_bytes(), errno))?;
        }
        Ok(())
    }

    /// Return the differing attributes, including whether a hardlink shares its leader's inode.
    fn differences(
        &mut self,
        entry: &Entry<'_>,
        seen: &LocalStatus,
        target: &[u8],
        number_of: &NumberOf<'_>,
    ) -> Outcome<AttributeSet> {
        let attributes = self.wanted_attributes(entry, number_of)?;
        let body = match &entry.body {
            Body::File { size, .. } => difference::Body::File(*size),
            Body::Directory => difference::Body::Directory,
            Body::Symlink { target } => difference::Body::Symlink(target),
        };
        let mut differing = differences(body, &attributes, seen, target);
        if let (
            Body::File {
                link: Some(link), ..
            },
            Some(EntryKind::File),
        ) = (&entry.body, seen.kind)
        {
            let leader = look(&mut self.folders, link.as_bytes()).ok().flatten();
            let is_leader = leader.is_some_and(|it| it.seen.is_inode_of(seen));
            differing.add_if(Attribute::Link, !is_leader);
        }
        Ok(differing)
    }

    /// Return an entry's attributes with the numbers of its owners, `None` if owners are not compared; a mode that
    /// may differ is kept.
    fn wanted_attributes(
        &mut self,
        entry: &Entry<'_>,
        number_of: &NumberOf<'_>,
    ) -> Outcome<attributes::Attributes> {
        let Self {
            options, numbers, ..
        } = self;
        let mut number = |kind, name| {
            if options.owners {
                numbers.number(kind, name, number_of)
            } else {
                Ok(None)
            }
        };
        let mode = options.modes.of(entry).map(u32::from);
        Ok(attributes::Attributes {
            user: number(OwnerKind::User, &entry.owner)?,
            group: number(OwnerKind::Group, &entry.group)?,
            mode: mode.map_or(Mode::Kept(0), Mode::Exact),
            mtime: entry.mtime,
        })
    }
}

/// True for a file with a digest and the right size, unless it is a hardlink to the right leader.
fn is_worth_reading(entry: &Entry<'_>, differing: AttributeSet) -> bool {
    let Body::File { link, digest, .. } = &entry.body else {
        return false;
    };
    digest.is_some()
        && !differing.has(Attribute::Type)
        && !differing.has(Attribute::Size)
        && (link.is_none() || differing.has(Attribute::Link))
}
