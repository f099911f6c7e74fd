//! Compares the attributes of a local entry with the wanted ones.

use huai_plan::candidates::{Attribute as At, AttributeSet as Differing, EntryKind, LocalStatus};
use huai_sys::attributes::{Attributes, Mode};

/// The fields of its type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body<'a> {
    /// A regular file of this size in bytes.
    File(u64),
    Directory,
    /// A symlink with this target.
    Symlink(&'a [u8]),
}

/// Return the differing attributes of `seen`, whose symlink target is `target`; ignores hardlinks.  Of another type,
/// nothing else is compared; attributes that are not stated and modes of symlinks do not count.
pub(crate) fn differences(
    body: Body<'_>,
    wanted: &Attributes,
    seen: &LocalStatus,
    target: &[u8],
) -> Differing {
    let mut differing = Differing::default();
    match (body, seen.kind) {
        (Body::File(size), Some(EntryKind::File)) => differing.add_if(At::Size, size != seen.size),
        (Body::Symlink(wanted), Some(EntryKind::Symlink)) => {
            differing.add_if(At::Target, wanted != target);
        }
        (Body::Directory, Some(EntryKind::Directory)) => {}
        _ => {
            differing.add_if(At::Type, true);
            return differing;
        }
    }
    differing.add_if(At::Mtime, wanted.mtime != seen.mtime);
    // Linux gives every symlink the same mode.
    let has_mode = !matches!(body, Body::Symlink(_));
    let mode = Mode::Exact(u32::from(seen.mode));
    let is_stated = matches!(wanted.mode, Mode::Exact(_));
    differing.add_if(At::Mode, has_mode && is_stated && wanted.mode != mode);
    let differs = |wanted: Option<u32>, seen| wanted.is_some_and(|wanted| wanted != seen);
    differing.add_if(At::Owner, differs(wanted.user, seen.user));
    differing.add_if(At::Group, differs(wanted.group, seen.group));
    differing
}
