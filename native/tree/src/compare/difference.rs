//! In which attributes what is there differs from what should be.

use rustix::fs::FileType;

use super::differing::{Attribute as At, Attributes as Differing};
use super::local::Seen;
use crate::sys::attributes::{Attributes, Mode};

/// What only files, directories or symlinks have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body<'a> {
    /// A regular file of so many bytes.
    File(u64),
    Directory,
    /// A symlink with this target.
    Symlink(&'a [u8]),
}

/// What `seen`, with `target` if it is a symlink, has otherwise; hardlinks are left to the caller.
pub(crate) fn differences(
    body: Body<'_>,
    wanted: &Attributes,
    seen: &Seen,
    target: &[u8],
) -> Differing {
    let mut found = Differing::default();
    match (body, seen.kind) {
        (Body::File(size), FileType::RegularFile) => found.add_if(At::Size, size != seen.size),
        (Body::Symlink(wanted), FileType::Symlink) => found.add_if(At::Target, wanted != target),
        (Body::Directory, FileType::Directory) => {}
        _ => {
            found.add_if(At::Type, true);
            return found;
        }
    }
    found.add_if(At::Mtime, wanted.mtime != seen.mtime);
    // Linux gives every symlink the same mode.
    let has_mode = !matches!(body, Body::Symlink(_));
    let mode = Mode::Exact(u32::from(seen.mode));
    let is_stated = matches!(wanted.mode, Mode::Exact(_));
    found.add_if(At::Mode, has_mode && is_stated && wanted.mode != mode);
    let differs = |wanted: Option<u32>, seen| wanted.is_some_and(|wanted| wanted != seen);
    found.add_if(At::Owner, differs(wanted.user, seen.user));
    found.add_if(At::Group, differs(wanted.group, seen.group));
    found
}
