//! One path of a module with its attributes, as it stands in the text that it was read from.

use std::borrow::Cow;

use crate::limits::DIGEST_BYTES;
use crate::path::RelPath;

/// The mode of a file whose line states none.
pub const FILE_MODE: u16 = 0o644;
/// The same for a directory.
pub const DIRECTORY_MODE: u16 = 0o755;
/// The same for a symlink.
pub const SYMLINK_MODE: u16 = 0o777;
/// The owner and the group where a line states none.
pub const ROOT_OWNER: &[u8] = b"root";

/// BLAKE3 of a file's content.
pub type Digest = [u8; DIGEST_BYTES];

/// A file, directory or symlink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The last component of its path; empty for a directory that is seen from inside.
    pub name: Cow<'a, [u8]>,
    /// Nanoseconds since the epoch.
    pub mtime: i64,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u16,
    /// The user's name, or `#ID` where the upstream knows no name.
    pub owner: Cow<'a, [u8]>,
    /// The same for the group.
    pub group: Cow<'a, [u8]>,
    /// What only its type has.
    pub body: Body<'a>,
}

/// What only files, directories or symlinks have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// A regular file.
    File {
        /// Bytes.
        size: u64,
        /// The first path of its hardlink group; none for that first path itself.
        link: Option<RelPath>,
        /// Of the content; none if it was not computed.
        digest: Option<Digest>,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Where it points; never followed.
        target: Cow<'a, [u8]>,
    },
}

impl Entry<'_> {
    /// Whether the two differ in more than their paths.
    ///
    /// A digest that one side does not know is not a difference by itself.
    pub fn differs(&self, other: &Self) -> bool {
        self.mtime != other.mtime
            || self.mode != other.mode
            || self.owner != other.owner
            || self.group != other.group
            || self.body.differs(&other.body)
    }

    /// The same, apart from the text that it was read from.
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
