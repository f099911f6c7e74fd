//! One row for each path that may have to change: how it is, should be, and was.

use std::collections::HashMap;

use huai_format::bug::fit;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::compare::differing::Attributes as Differing;
pub use crate::compare::local::Seen;
use crate::sys::attributes::{self, Attributes};
use crate::sys::call::Outcome;

/// Bytes of the text: a path, a target, a digest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    begin: u32,
    end: u32,
}

impl Span {
    /// Whether there is nothing.
    pub fn is_empty(self) -> bool {
        self.begin == self.end
    }
}

const UNKNOWN: u32 = 0;
const NOTHING: u32 = 1;

/// What metadata can describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink.
    Symlink,
}

impl Seen {
    /// Something of this kind, or a device, socket or fifo, of which no more is known.
    pub fn of(kind: Option<Kind>) -> Self {
        Self {
            kind: match kind {
                Some(Kind::File) => FileType::RegularFile,
                Some(Kind::Directory) => FileType::Directory,
                Some(Kind::Symlink) => FileType::Symlink,
                None => FileType::Fifo,
            },
            mode: 0,
            links: 1,
            user: 0,
            group: 0,
            size: 0,
            mtime: 0,
            device: 0,
            inode: 0,
        }
    }

    /// What it is; none: metadata cannot describe it.
    pub fn type_of(&self) -> Option<Kind> {
        match self.kind {
            FileType::RegularFile => Some(Kind::File),
            FileType::Directory => Some(Kind::Directory),
            FileType::Symlink => Some(Kind::Symlink),
            _ => None,
        }
    }
}

/// A mode, and what the metadata say instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// Permission bits with setuid, setgid and sticky.
    pub bits: u16,
    /// What `bits` are a safer mode than; or the same.
    pub stated: u16,
    /// For what is made anew, less the umask; what is there keeps its own.
    pub kept: bool,
}

/// An entry of a snapshot as a tree gets it, without its path.
#[derive(Debug, Clone, Copy)]
pub struct Stated {
    /// Its type.
    pub kind: Kind,
    /// Which mode it gets.
    pub mode: Mode,
    /// The place of its user's name among `Candidates::owners`.
    pub owner: u32,
    /// The same of its group's.
    pub group: u32,
    /// Nanoseconds since the epoch.
    pub mtime: i64,
    /// Bytes of a file.
    pub size: u64,
    /// The leader of a hardlink, or a symlink's target; empty: none.
    pub other: Span,
    /// Of a file's content; empty: not known.
    pub digest: Span,
}

impl Stated {
    pub(crate) fn is_file(&self) -> bool {
        self.kind == Kind::File
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Whether it is a hardlink of another path.
    pub fn is_linked(&self) -> bool {
        self.is_file() && !self.other.is_empty()
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy)]
pub enum Here {
    /// Nobody looked.
    Unknown,
    /// Nothing, or a path above is no directory.
    Nothing,
    /// This, with its target if it is a symlink.  With `named`, user and group are places among
    /// `Candidates::owners`, else numbers of this machine.
    Something {
        /// What was seen.
        seen: Seen,
        /// Of a symlink.
        target: Span,
        /// How owners are meant.
        named: bool,
    },
}

impl Here {
    /// What was seen there.
    pub fn seen(&self) -> Option<&Seen> {
        match self {
            Self::Something { seen, .. } => Some(seen),
            Self::Unknown | Self::Nothing => None,
        }
    }

    /// What stands there, if metadata can describe that.
    pub fn kind(&self) -> Option<Kind> {
        self.seen().and_then(Seen::type_of)
    }

    /// Whether a device, socket or fifo stands there.
    pub(super) fn is_special(&self) -> bool {
        self.seen().is_some() && self.kind().is_none()
    }
}

/// One path.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Where.
    pub path: Span,
    /// What should stand there; none: nothing.
    pub wanted: Option<Stated>,
    /// Where what past snapshots have there begins among `Candidates::pasts`, and how many have it.
    past: (u32, u32),
    /// The place of what stands there among `Candidates::heres`.
    here: u32,
    /// In what that differs from what should.
    pub differing: Differing,
    /// Of the content that is there, if that was read; empty: it was not.
    pub digest: Span,
}

/// All of one comparison.  What most rows of a new tree lack lies apart from them.
#[derive(Debug, Clone)]
pub struct Candidates {
    pub(super) rows: Vec<Row>,
    text: Vec<u8>,
    pasts: Vec<Stated>,
    /// `UNKNOWN` and `NOTHING` first.
    heres: Vec<Here>,
    /// Names of users and groups.
    owners: Vec<Vec<u8>>,
    places: HashMap<Vec<u8>, u32>,
}

impl Candidates {
    /// In the order in which they came.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The same, to change what is known of them.
    pub fn rows_mut(&mut self) -> &mut [Row] {
        &mut self.rows
    }

    /// The bytes of a span.
    pub fn bytes(&self, span: Span) -> &[u8] {
        &self.text[span.begin as usize..span.end as usize]
    }

    /// Where a row is about.
    pub fn path(&self, row: &Row) -> &[u8] {
        self.bytes(row.path)
    }

    /// The entries of all past snapshots.
    pub fn past(&self, row: &Row) -> &[Stated] {
        let (begin, count) = row.past;
        let range = begin as usize..begin as usize + count as usize;
        &self.pasts[range]
    }

    /// What stands there.
    pub fn here(&self, row: &Row) -> &Here {
        &self.heres[row.here as usize]
    }

    /// What stands at the path of the row at a place.
    pub fn set_here(&mut self, place: usize, here: Here) {
        if let Some(row) = self.rows.get_mut(place) {
            row.here = put_here(&mut self.heres, here);
        }
    }

    /// Puts bytes into the text; `NOMEM` beyond four GiB.
    pub fn put(&mut self, bytes: &[u8]) -> Outcome<Span> {
        let place = |length: usize| u32::try_from(length).map_err(|_| Errno::NOMEM);
        let begin = place(self.text.len())?;
        let end = place(self.text.len() + bytes.len())?;
        self.text.extend_from_slice(bytes);
        Ok(Span { begin, end })
    }

    /// Puts bytes into the text, unless they are those of one of `known`.
    pub fn put_again(&mut self, bytes: &[u8], known: [Option<Span>; 2]) -> Outcome<Span> {
        let same = known.into_iter().flatten();
        match same.into_iter().find(|span| self.bytes(*span) == bytes) {
            Some(span) => Ok(span),
            None => self.put(bytes),
        }
    }

    /// One more row; nothing is known to differ.
    pub fn push(&mut self, path: Span, wanted: Option<Stated>, past: &[Stated], here: Here) {
        let mut row = Row {
            path,
            wanted,
            past: (0, 0),
            here: put_here(&mut self.heres, here),
            differing: Differing::default(),
            digest: Span::default(),
        };
        self.set_past(&mut row, past);
        self.rows.push(row);
    }

    pub(super) fn set_past(&mut self, row: &mut Row, past: &[Stated]) {
        row.past = (number(self.pasts.len()), number(past.len()));
        self.pasts.extend_from_slice(past);
    }

    /// Names of users and groups.
    pub fn owners(&self) -> &[Vec<u8>] {
        &self.owners
    }

    /// The place of a name among them.
    pub fn owner(&mut self, name: &[u8]) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = number(self.owners.len());
        self.owners.push(name.to_vec());
        self.places.insert(name.to_vec(), place);
        place
    }

    /// What an entry is to have; `numbers` are those of each owner as a user and as a group.
    pub fn attributes(
        &self,
        stated: &Stated,
        numbers: &[(Option<u32>, Option<u32>)],
    ) -> Attributes {
        let of = |place: u32| numbers.get(place as usize).copied().unwrap_or_default();
        let bits = u32::from(stated.mode.bits);
        Attributes {
            user: of(stated.owner).0,
            group: of(stated.group).1,
            mode: if stated.mode.kept {
                attributes::Mode::Kept(bits)
            } else {
                attributes::Mode::Exact(bits)
            },
            mtime: stated.mtime,
        }
    }
}

impl Default for Candidates {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            text: Vec::new(),
            pasts: Vec::new(),
            heres: vec![Here::Unknown, Here::Nothing],
            owners: Vec::new(),
            places: HashMap::new(),
        }
    }
}

/// The place of `here` among `heres`.
fn put_here(heres: &mut Vec<Here>, here: Here) -> u32 {
    match here {
        Here::Unknown => UNKNOWN,
        Here::Nothing => NOTHING,
        Here::Something { .. } => {
            heres.push(here);
            number(heres.len() - 1)
        }
    }
}

/// There are no more rows than that: each has a path among four GiB of text.
fn number(count: usize) -> u32 {
    fit(count)
}
