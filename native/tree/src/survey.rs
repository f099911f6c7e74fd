//! What stands at single paths, against what should be there.

use huai_format::path::parent;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::attributes::Attributes;
use crate::call::Outcome;
use crate::difference::{self, differences};
use crate::findings::{Attribute, Attributes as Differing, Findings};
use crate::folders::Folders;
use crate::local::{Closed, Found, look};
use crate::stop::Stop;

/// One path.
#[derive(Debug)]
pub struct Place {
    /// Where.
    pub path: Vec<u8>,
    /// What should be there; none: nothing, or whatever it is.
    pub wanted: Option<Wanted>,
}

/// What should be somewhere.
#[derive(Debug)]
pub struct Wanted {
    /// Its type, and what only that has.
    pub body: Body,
    /// All others.
    pub attributes: Attributes,
}

/// What only files, directories or symlinks have.
#[derive(Debug)]
pub enum Body {
    /// A regular file.
    File {
        /// Bytes.
        size: u64,
        /// The first path of its hardlink group; none for that first path itself.
        link: Option<Vec<u8>>,
    },
    /// A directory.
    Directory,
    /// A symlink with this target.
    Symlink(Vec<u8>),
}

/// Looks at one place after the other: a match for each where something is, whatever differs.
pub(crate) fn survey(
    folders: &mut Folders,
    places: &[Place],
    stop: &Stop,
    to: &mut Findings,
) -> Outcome<()> {
    for place in places {
        if stop.is_set() {
            return Err(Errno::CANCELED);
        }
        match find(folders, &place.path) {
            Ok(None) => to.add_absent(),
            Ok(Some(found)) => match judge(folders, place.wanted.as_ref(), &found) {
                Ok(differing) => to.add_present(differing, &found.seen, &found.target),
                Err((leader, errno)) => to.add_unreadable(leader, Closed::Errno(errno), false),
            },
            Err(errno) => to.add_unreadable(&place.path, Closed::Errno(errno), false),
        }
    }
    to.finish();
    Ok(())
}

fn find(folders: &mut Folders, path: &[u8]) -> Outcome<Option<Found>> {
    folders.permitted(&[parent(path)], |folders| look(folders, path))
}

/// What differs; or the leader that cannot be looked at, and why.
fn judge<'a>(
    folders: &mut Folders,
    wanted: Option<&'a Wanted>,
    Found { seen, target }: &Found,
) -> Result<Differing, (&'a [u8], Errno)> {
    let Some(Wanted { body, attributes }) = wanted else {
        return Ok(Differing::default());
    };
    let plain = match body {
        Body::File { size, .. } => difference::Body::File(*size),
        Body::Directory => difference::Body::Directory,
        Body::Symlink(target) => difference::Body::Symlink(target),
    };
    let mut found = differences(plain, attributes, seen, target);
    if let (
        Body::File {
            link: Some(link), ..
        },
        FileType::RegularFile,
    ) = (body, seen.kind)
    {
        let leader = find(folders, link).map_err(|errno| (&**link, errno))?;
        let is_leader = leader.is_some_and(|it| it.seen.is_inode_of(seen));
        found.add_if(Attribute::Link, !is_leader);
    }
    Ok(found)
}
