//! A wanted entry and what is at its path: in which attributes they differ.

use huai_format::entry::{Body, Entry};
use huai_format::error::Result;
use huai_format::path::RelPath;
use rustix::fs::FileType;

use super::difference::{self, differences};
use super::differing::{Attribute, Attributes};
use super::findings::Sink;
use super::local::{Seen, look};
use super::place::{Place, failed};
use crate::sys::attributes::{self, Mode};
use crate::sys::call::Outcome;
use crate::walk::numbers::NumberOf;
use crate::walk::owners::Kind;

impl Place {
    /// Compare a wanted entry with what is at its path.
    pub(super) fn found(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        seen: &Seen,
        target: &[u8],
        number_of: &NumberOf<'_>,
        to: &mut impl Sink,
    ) -> Result<()> {
        let entry = wanted.1;
        let differing = self.differences(entry, seen, target, number_of);
        let mut differing = differing.map_err(|errno| failed(wanted.0.as_bytes(), errno))?;
        if let (Body::File { link: None, .. }, 2..) = (&entry.body, seen.links) {
            // One inode here for two groups of the snapshot: a change of one would change both.
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

    fn differences(
        &mut self,
        entry: &Entry<'_>,
        seen: &Seen,
        target: &[u8],
        number_of: &NumberOf<'_>,
    ) -> Outcome<Attributes> {
        let wanted = self.wanted(entry, number_of)?;
        let body = match &entry.body {
            Body::File { size, .. } => difference::Body::File(*size),
            Body::Directory => difference::Body::Directory,
            Body::Symlink { target } => difference::Body::Symlink(target),
        };
        let mut found = differences(body, &wanted, seen, target);
        if let (
            Body::File {
                link: Some(link), ..
            },
            FileType::RegularFile,
        ) = (&entry.body, seen.kind)
        {
            let leader = look(&mut self.folders, link.as_bytes()).ok().flatten();
            let is_leader = leader.is_some_and(|it| it.seen.is_inode_of(seen));
            found.add_if(Attribute::Link, !is_leader);
        }
        Ok(found)
    }

    /// The attributes of an entry here.
    fn wanted(
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
            user: number(Kind::User, &entry.owner)?,
            group: number(Kind::Group, &entry.group)?,
            mode: mode.map_or(Mode::Kept(0), Mode::Exact),
            mtime: entry.mtime,
        })
    }
}

/// A file with a digest and the right size that is no hardlink.
fn is_worth_reading(entry: &Entry<'_>, differing: Attributes) -> bool {
    let Body::File { link, digest, .. } = &entry.body else {
        return false;
    };
    digest.is_some()
        && !differing.has(Attribute::Type)
        && !differing.has(Attribute::Size)
        && (link.is_none() || differing.has(Attribute::Link))
}
