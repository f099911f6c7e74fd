//! An entry of a module, borrowed from the text that it was read from.

use std::borrow::Cow;

use crate::limits::DIGEST_BYTES;
use crate::path::RelPath;

/// The mode of a file whose line states no mode.
pub const FILE_MODE: u16 = 0o644;
/// The mode of a directory whose line states no mode.
pub const DIRECTORY_MODE: u16 = 0o755;
/// The mode of a symlink whose line states no mode.
pub const SYMLINK_MODE: u16 = 0o777;
/// The owner and the group if a line states none.
pub const ROOT_OWNER: &[u8] = b"root";

/// The BLAKE3 digest of a file's content.
pub type Digest = [u8; DIGEST_BYTES];

/// A file, directory or symlink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The last component of the path; empty for a directory in its own listing.
    pub name: Cow<'a, [u8]>,
    /// Nanoseconds since the epoch.
    pub mtime: i64,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u16,
    /// The user's name, or `#ID` if the upstream has no name for it.
    pub owner: Cow<'a, [u8]>,
    /// The group's name, or `#ID`.
    pub group: Cow<'a, [u8]>,
    /// The fields of its type.
    pub body: Body<'a>,
}

/// The fields that only files, directories or symlinks have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// A regular file.
    File {
        /// The size in bytes.
        size: u64,
        /// The leader of its hardlink group; `None` for the leader itself.
        link: Option<RelPath>,
        /// The digest of the content, if it was computed.
        digest: Option<Digest>,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// The target; never followed.
        target: Cow<'a, [u8]>,
    },
}

impl Entry<'_> {
    /// Return true if the two differ in more than their paths.
    ///
    /// A digest that only one side has is not a difference.
    pub fn differs(&self, other: &Self) -> bool {
        self.mtime != other.mtime
            || self.mode != other.mode
            || self.owner != other.owner
            || self.group != other.group
            || self.body.differs(&other.body)
    }

    /// Copy the entry out of the text that it was read from.
    pub fn into_owned(self) -> Entry<'static> {
        Entry {
            name: owned(self.name),
            mtime: self.mtime,
            mode: self.mode,
            owner: owned(self.owner),
            group: owned(self.group),
            body: self.body.into_owned(),
        }
    }
}

impl Body<'_> {
    fn into_owned(self) -> Body<'static> {
        match self {
            Self::File { size, link, digest } => Body::File { size, link, digest },
            Self::Directory => Body::Directory,
            Self::Symlink { target } => Body::Symlink {
                target: owned(target),
            },
        }
    }

    /// Return true if the bodies differ; digests count only if both have one.
    fn differs(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { size, link, digest },
                Self::File {
                    size: other_size,
                    link: other_link,
                    digest: other_digest,
                },
            ) => {
                let digests = digest.zip(*other_digest);
                size != other_size
                    || link != other_link
                    || digests.is_some_and(|(one, other)| one != other)
            }
            _ => self != other,
        }
    }
}

fn owned(bytes: Cow<'_, [u8]>) -> Cow<'static, [u8]> {
    Cow::Owned(bytes.into_owned())
}
