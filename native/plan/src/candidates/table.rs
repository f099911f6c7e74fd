//! The table of candidates: the local, wanted and past states of each path.

use std::collections::HashMap;

use super::differing::AttributeSet as Differing;
use huai_git::bug::fit;

/// The error of a table with more than four GiB of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFull;

/// A range of the text: a path, a target, a digest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    begin: u32,
    end: u32,
}

impl Span {
    /// Return true if the range is empty.
    pub fn is_empty(self) -> bool {
        self.begin == self.end
    }
}

const UNKNOWN: u32 = 0;
const NOTHING: u32 = 1;

/// The types of entries that metadata can describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink.
    Symlink,
}

/// The status of a local entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalStatus {
    /// The type; `None` for a device, socket or fifo.
    pub kind: Option<EntryKind>,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u16,
    /// The number of its names.
    pub links: u32,
    /// The number of its user.
    pub user: u32,
    /// The number of its group.
    pub group: u32,
    /// The size in bytes.
    pub size: u64,
    /// The time in nanoseconds since the epoch.
    pub mtime: i64,
    /// The device number of the file system.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

impl LocalStatus {
    /// Return true if it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == Some(EntryKind::Directory)
    }

    /// Return true if both are names of one inode.
    pub fn is_inode_of(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// A mode, and the one that metadata state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatedMode {
    /// Permission bits with setuid, setgid and sticky.
    pub bits: u16,
    /// The stated bits, which may be less safe than `bits`.
    pub stated: u16,
    /// True if existing entries keep their mode; a new one gets `bits` less the umask.
    pub kept: bool,
}

/// A wanted or past entry, without its path.
#[derive(Debug, Clone, Copy)]
pub struct Stated {
    /// The type.
    pub kind: EntryKind,
    /// The mode.
    pub mode: StatedMode,
    /// The position of the user's name in `Candidates::owners`.
    pub owner: u32,
    /// The position of the group's name.
    pub group: u32,
    /// The time in nanoseconds since the epoch.
    pub mtime: i64,
    /// The bytes of a file.
    pub size: u64,
    /// The leader of a hardlink, or a symlink's target.
    pub other: Span,
    /// The digest of a file's content, if known.
    pub digest: Span,
}

impl Stated {
    pub(super) fn is_file(&self) -> bool {
        self.kind == EntryKind::File
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind == EntryKind::Directory
    }

    /// Return true if it is a hardlink to another path.
    pub fn is_linked(&self) -> bool {
        self.is_file() && !self.other.is_empty()
    }
}

/// The local entry at a path.
#[derive(Debug, Clone, Copy)]
pub enum LocalState {
    /// It was not examined yet.
    Unknown,
    /// The path is free, or an ancestor is not a directory.
    Nothing,
    /// An entry.  With `named`, user and group are positions in
    /// `Candidates::owners`, otherwise numbers of this machine.
    Something {
        /// The status.
        seen: LocalStatus,
        /// The target of a symlink.
        target: Span,
        /// True if owners are positions.
        named: bool,
    },
}

impl LocalState {
    /// Return the status of the entry; `None` if it is missing or was not examined.
    pub fn status(&self) -> Option<&LocalStatus> {
        match self {
            Self::Something { seen, .. } => Some(seen),
            Self::Unknown | Self::Nothing => None,
        }
    }

    /// Return the type of the entry, if metadata can describe it.
    pub fn kind(&self) -> Option<EntryKind> {
        self.status().and_then(|seen| seen.kind)
    }

    /// Return true if the entry is a device, socket or fifo.
    pub(super) fn is_special(&self) -> bool {
        self.status().is_some() && self.kind().is_none()
    }
}

/// A candidate.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The path.
    pub path: Span,
    /// The wanted entry; `None` if the path is to be free.
    pub wanted: Option<Stated>,
    /// The first position in `Candidates::past_entries` and the number of past entries.
    past: (u32, u32),
    /// The position of the local state in `Candidates::local_states`.
    local: u32,
    /// The attributes in which the local and wanted entries differ.
    pub differing: Differing,
    /// The digest of the local content, if it was hashed.
    pub digest: Span,
}

/// The candidates of one comparison.  Fields that most rows of a new tree lack are stored apart.
#[derive(Debug, Clone)]
pub struct Candidates {
    pub(super) rows: Vec<Row>,
    text: Vec<u8>,
    past_entries: Vec<Stated>,
    /// The local states; `UNKNOWN` and `NOTHING` come first.
    local_states: Vec<LocalState>,
    /// The names of users and groups.
    owners: Vec<Vec<u8>>,
    /// The positions of `owners`, by name.
    owner_positions: HashMap<Vec<u8>, u32>,
}

impl Candidates {
    /// Return the rows, in the order in which they were added unless merged.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Return the rows for changes.
    pub fn rows_mut(&mut self) -> &mut [Row] {
        &mut self.rows
    }

    /// Return the bytes of a span.
    pub fn bytes(&self, span: Span) -> &[u8] {
        &self.text[span.begin as usize..span.end as usize]
    }

    /// Return the path of a row.
    pub fn path(&self, row: &Row) -> &[u8] {
        self.bytes(row.path)
    }

    /// Return the entries of all past snapshots at the path of a row; empty if none has one.
    pub fn past(&self, row: &Row) -> &[Stated] {
        let (begin, count) = row.past;
        let range = begin as usize..begin as usize + count as usize;
        &self.past_entries[range]
    }

    /// Return the local state.
    pub fn local(&self, row: &Row) -> &LocalState {
        &self.local_states[row.local as usize]
    }

    /// Set the local state of the row at a position; does nothing beyond the last row.
    pub fn set_local(&mut self, position: usize, local: LocalState) {
        if let Some(row) = self.rows.get_mut(position) {
            row.local = add_local_state(&mut self.local_states, local);
        }
    }

    /// Append bytes to the text; an error beyond four GiB.
    pub fn add_text(&mut self, bytes: &[u8]) -> Result<Span, TableFull> {
        let place = |length: usize| u32::try_from(length).map_err(|_| TableFull);
        let begin = place(self.text.len())?;
        let end = place(self.text.len() + bytes.len())?;
        self.text.extend_from_slice(bytes);
        Ok(Span { begin, end })
    }

    /// Append bytes to the text, unless one of `known` has the same ones, which is then returned.
    pub fn add_text_once(
        &mut self,
        bytes: &[u8],
        known: [Option<Span>; 2],
    ) -> Result<Span, TableFull> {
        let same = known.into_iter().flatten();
        match same.into_iter().find(|span| self.bytes(*span) == bytes) {
            Some(span) => Ok(span),
            None => self.add_text(bytes),
        }
    }

    /// Add a row without known differences.
    pub fn push(&mut self, path: Span, wanted: Option<Stated>, past: &[Stated], local: LocalState) {
        let mut row = Row {
            path,
            wanted,
            past: (0, 0),
            local: add_local_state(&mut self.local_states, local),
            differing: Differing::default(),
            digest: Span::default(),
        };
        self.set_past(&mut row, past);
        self.rows.push(row);
    }

    /// Replace the past entries of a row by copies of these.
    pub(super) fn set_past(&mut self, row: &mut Row, past: &[Stated]) {
        row.past = (number(self.past_entries.len()), number(past.len()));
        self.past_entries.extend_from_slice(past);
    }

    /// Return the names of users and groups.
    pub fn owners(&self) -> &[Vec<u8>] {
        &self.owners
    }

    /// Return the position of an owner's name, which is added if new.
    pub fn owner(&mut self, name: &[u8]) -> u32 {
        if let Some(place) = self.owner_positions.get(name) {
            return *place;
        }
        let place = number(self.owners.len());
        self.owners.push(name.to_vec());
        self.owner_positions.insert(name.to_vec(), place);
        place
    }
}

impl Default for Candidates {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            text: Vec::new(),
            past_entries: Vec::new(),
            local_states: vec![LocalState::Unknown, LocalState::Nothing],
            owners: Vec::new(),
            owner_positions: HashMap::new(),
        }
    }
}

/// Return the position of a local state; adds it, unless it is unknown or nothing.
fn add_local_state(states: &mut Vec<LocalState>, local: LocalState) -> u32 {
    match local {
        LocalState::Unknown => UNKNOWN,
        LocalState::Nothing => NOTHING,
        LocalState::Something { .. } => {
            states.push(local);
            number(states.len() - 1)
        }
    }
}

/// Convert the number of rows: each has a path in four GiB of text, so it fits.
fn number(count: usize) -> u32 {
    fit(count)
}
