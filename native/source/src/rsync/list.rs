//! Decodes the file list (`recv_file_entry` in rsync's flist.c).
//!
//! A sender that recurses incrementally sends one list a directory, and the next ones as the client
//! is done with those before; another one sends one list, then the names of owners.

use std::collections::HashMap;

use huai_format::limits::PATH_BYTES;
use huai_git::cursor::Cursor;
use huai_git::error::{Error, Result};

use super::stream::{Frames, Parsed, count, int, take, varint, varlong};
use crate::entry::{EntryType, ListEntry};
use crate::entry_list::EntryList;
use crate::spool::EntryStore;

// Flags of an entry.
const SAME_MODE: u16 = 1 << 1;
const EXTENDED: u16 = 1 << 2;
const SAME_USER: u16 = 1 << 3;
const SAME_GROUP: u16 = 1 << 4;
const SAME_NAME: u16 = 1 << 5;
const LONG_NAME: u16 = 1 << 6;
const SAME_TIME: u16 = 1 << 7;
const SAME_MAJOR: u16 = 1 << 8;
const HARDLINK: u16 = 1 << 9;
const USER_NAME: u16 = 1 << 10;
const GROUP_NAME: u16 = 1 << 11;
const FIRST_HARDLINK: u16 = 1 << 12;
const NANOSECONDS: u16 = 1 << 13;
/// The end of a list with an error of the sender, in place of an entry.
const END_WITH_ERROR: u16 = EXTENDED | 1 << 12;

// Types in a mode.
const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const DEVICES: [u32; 2] = [0o020_000, 0o060_000];
const SPECIAL: [u32; 2] = [0o010_000, 0o140_000];
const MODE: u32 = 0o7777;

/// The flag of a sender that recurses incrementally.
const INCREMENTAL: u32 = 1;
/// The flag of a sender that writes the flags of an entry as one number; it was not asked to.
const VARINT_FLAGS: u32 = 1 << 7;

/// An index that is not one of a file: the client is done with a list.
const DONE: i64 = -1;
/// No list follows.
const LAST: i64 = -2;
/// Lists of directories: the first, and all below it.
const LISTS: i64 = -101;

const SECOND: i128 = 1_000_000_000;

/// A frame with `DONE`, by which the client ends a list, a phase or the connection.
const DONE_FRAME: &[u8] = &[1, 0, 0, 7, 0];
/// The phases of a transfer.
const PHASES: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The flags of the sender, and its seed of checksums.
    Start,
    /// An entry, or the end of a list.
    Entry,
    /// The names of users (true), or of groups (false).
    Names(bool),
    /// The index of a list of an incremental sender.
    Index,
    /// The statistics and farewells, which are ignored.
    End,
}

/// A reader of the file list of a sender.
#[derive(Debug)]
pub struct RsyncList {
    protocol: u32,
    frames: Frames,
    data: Vec<u8>,
    next: Next,
    is_incremental: bool,
    /// The path of the last entry, and what the next one takes over.
    path: Vec<u8>,
    last: Last,
    /// The index of the next entry, and of the first of the current list.
    index: u32,
    first: u32,
    /// The first names of hardlinks in the current list, by their index.
    leaders: HashMap<u32, (ListEntry, Last)>,
    /// The negative of the last index of a list.
    negative: i64,
    /// True if the sender could not read something.
    io_error: bool,
    /// The bytes to send.
    answer: Vec<u8>,
}

/// The fields that an entry takes over from the one before.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    seconds: i64,
    mode: u32,
    owner: (u32, u32),
    major: u32,
}

impl RsyncList {
    /// Expect the list of a sender that speaks `protocol`, 30 to 40; an error for another version.
    pub fn new(protocol: u32) -> Result<Self> {
        if !(30..=40).contains(&protocol) {
            let rule = format!("rsync protocol {protocol} is not supported");
            return Err(Error::new(rule));
        }
        Ok(Self {
            protocol,
            frames: Frames::default(),
            data: Vec::new(),
            next: Next::Start,
            is_incremental: false,
            path: Vec::new(),
            last: Last::default(),
            index: 0,
            first: 0,
            leaders: HashMap::new(),
            negative: 1,
            io_error: false,
            answer: Vec::new(),
        })
    }

    /// Read the next bytes, and add entries to `entries`; returns what to send to the sender.
    /// Fails for a malformed list, and if `entries` refuses an entry; no bytes may follow then.
    pub fn feed<S: EntryStore>(
        &mut self,
        bytes: &[u8],
        entries: &mut EntryList<S>,
    ) -> Result<Vec<u8>> {
        let mut bytes = bytes;
        if self.next == Next::Start {
            self.data.extend_from_slice(bytes);
            let first_bytes = std::mem::take(&mut self.data);
            let mut cursor = Cursor::new(&first_bytes);
            if self.start(&mut cursor)?.is_none() {
                self.data = first_bytes;
                return Ok(Vec::new());
            }
            self.frames.feed(cursor.rest(), &mut self.data)?;
            bytes = b"";
        }
        self.frames.feed(bytes, &mut self.data)?;
        let mut data = std::mem::take(&mut self.data);
        let mut cursor = Cursor::new(&data);
        loop {
            let before = cursor;
            if self.step(&mut cursor, entries)?.is_none() {
                let read_bytes = data.len().saturating_sub(before.rest().len());
                data.drain(..read_bytes);
                self.data = data;
                return Ok(std::mem::take(&mut self.answer));
            }
        }
    }

    /// Return true if the list is complete: the sender closes the connection.
    pub fn is_complete(&self) -> bool {
        self.next == Next::End
    }

    /// Return true if the list lacks what the sender could not read.
    pub fn is_partial(&self) -> bool {
        self.io_error || self.frames.io_error || self.frames.has_failed
    }

    /// Return the sender's messages, oldest first, at most the last hundred.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.messages.iter().map(Vec::as_slice)
    }

    /// Take the flags and the seed of the sender, which decide the kind of the list; `None` if more bytes are needed.
    /// Fails for flags that were not asked for.
    fn start(&mut self, data: &mut Cursor<'_>) -> Parsed<()> {
        let flags = take!(varint(data)?);
        take!(int(data));
        if flags & VARINT_FLAGS != 0 {
            return Err(Error::new("rsync offers a list that was not asked for"));
        }
        self.is_incremental = flags & INCREMENTAL != 0;
        self.index = u32::from(self.is_incremental);
        self.first = self.index;
        self.next = Next::Entry;
        Ok(Some(()))
    }

    /// Take the next entry, name or index; `None` if more bytes are needed, or after the end.  Then the caller has to
    /// resume from where `data` was.
    fn step<S: EntryStore>(
        &mut self,
        data: &mut Cursor<'_>,
        entries: &mut EntryList<S>,
    ) -> Parsed<()> {
        match self.next {
            Next::Start | Next::End => Ok(None),
            Next::Entry => self.entry(data, entries),
            Next::Names(is_user) => self.owner_name(data, is_user, entries),
            Next::Index => self.list_index(data),
        }
    }

    /// Decode an entry and add it to `entries`, or end the list; `None`, without a change, if more bytes are needed.
    fn entry<S: EntryStore>(
        &mut self,
        data: &mut Cursor<'_>,
        entries: &mut EntryList<S>,
    ) -> Parsed<()> {
        let mut flags = u16::from(take!(data.byte()));
        if flags & EXTENDED != 0 {
            flags |= u16::from(take!(data.byte())) << 8;
        }
        if flags == 0 || flags == END_WITH_ERROR {
            if flags != 0 {
                self.io_error |= take!(varint(data)?) != 0;
            }
            self.end_list();
            return Ok(Some(()));
        }
        let mut last = self.last;
        let path = take!(path(data, flags, &self.path)?);
        let leader = take!(self.leader(data, flags)?);
        let leader_entry = leader.and_then(|number| self.leaders.get(&number));
        let (mut entry, names) = match leader_entry {
            Some((first_name, attributes)) => {
                last = *attributes;
                let mut entry = first_name.clone();
                entry.path = path;
                (entry, [None, None])
            }
            None => take!(self.attributes(data, flags, path, &mut last)?),
        };
        let (user, group) = entry.owner;
        for (name, (is_user, id)) in names.iter().zip([(true, user), (false, group)]) {
            if let Some(name) = name {
                entries.name_owner(is_user, id, name);
            }
        }
        self.path.clone_from(&entry.path);
        self.last = last;
        if flags & HARDLINK != 0 {
            entry.group = Some(leader.unwrap_or(self.index));
            if leader.is_none() {
                self.leaders.insert(self.index, (entry.clone(), self.last));
            }
        }
        entries.add(entry)?;
        self.index = self.index.checked_add(1).ok_or_else(too_long)?;
        Ok(Some(()))
    }

    /// Take the index of the file's first name, if the entry is a further name of the file; fails if that is unknown.
    fn leader(&self, data: &mut Cursor<'_>, flags: u16) -> Parsed<Option<u32>> {
        if flags & HARDLINK == 0 || flags & FIRST_HARDLINK != 0 {
            return Ok(Some(None));
        }
        let number = take!(count(data)?);
        if number < self.first || self.leaders.contains_key(&number) {
            return Ok(Some(Some(number)));
        }
        Err(Error::new("a hardlink of rsync's list refers to no file"))
    }

    /// Take the attributes of an entry, and the names of its user and group, if sent.  `last` has the attributes of
    /// the entry before, which are taken over, and is updated.
    fn attributes(
        &self,
        data: &mut Cursor<'_>,
        flags: u16,
        path: Vec<u8>,
        last: &mut Last,
    ) -> Parsed<(ListEntry, [Option<Vec<u8>>; 2])> {
        let size = take!(varlong(data, 3)?);
        let size = u64::try_from(size).map_err(|_| malformed(&path, "a negative size"))?;
        if flags & SAME_TIME == 0 {
            last.seconds = take!(varlong(data, 4)?);
        }
        let mut nanoseconds = 0;
        if flags & NANOSECONDS != 0 {
            nanoseconds = take!(count(data)?);
            if i128::from(nanoseconds) >= SECOND {
                return Err(malformed(&path, "a fraction of more than a second"));
            }
        }
        if flags & SAME_MODE == 0 {
            last.mode = take!(int(data));
        }
        let names = take!(owners(data, flags, &mut last.owner)?);
        let kind = last.mode & TYPE;
        if DEVICES.contains(&kind) || (SPECIAL.contains(&kind) && self.protocol < 31) {
            if flags & SAME_MAJOR == 0 {
                last.major = take!(count(data)?);
            }
            take!(varint(data)?);
        }
        let mut target = Vec::new();
        if kind == SYMLINK {
            let length = take!(count(data)?) as usize;
            if length > PATH_BYTES {
                return Err(malformed(&path, "a target that is too long"));
            }
            target = take!(data.take_bytes(length)).to_vec();
        }
        let kind = match kind {
            FILE => EntryType::File,
            DIRECTORY => EntryType::Directory,
            SYMLINK => EntryType::Symlink,
            kind if DEVICES.contains(&kind) || SPECIAL.contains(&kind) => EntryType::Special,
            _ => return Err(malformed(&path, "an unknown type")),
        };
        let entry = ListEntry {
            path,
            kind,
            size,
            mtime: i128::from(last.seconds)
                .saturating_mul(SECOND)
                .saturating_add(i128::from(nanoseconds)),
            mode: u16::try_from(last.mode & MODE).unwrap_or_default(),
            owner: last.owner,
            target,
            group: None,
            digest: None,
        };
        Ok(Some((entry, names)))
    }

    /// End a list.  An incremental sender is told to continue, and indices of its next list go on from here; after the list of
    /// another sender come the names of owners.
    fn end_list(&mut self) {
        if !self.is_incremental {
            self.next = Next::Names(true);
            return;
        }
        // A list takes one number more than it has entries.
        self.index = self.index.saturating_add(1);
        self.first = self.index;
        self.leaders.clear();
        self.answer.extend_from_slice(DONE_FRAME);
        self.next = Next::Index;
    }

    /// Take the name of a user, or else of a group, after a list that was sent at once; id 0 ends those of users,
    /// then all.
    fn owner_name<S: EntryStore>(
        &mut self,
        data: &mut Cursor<'_>,
        is_user: bool,
        entries: &mut EntryList<S>,
    ) -> Parsed<()> {
        let id = take!(count(data)?);
        if id == 0 {
            if is_user {
                self.next = Next::Names(false);
            } else {
                self.end();
            }
        } else {
            let name = take!(short_text(data));
            entries.name_owner(is_user, id, name);
        }
        Ok(Some(()))
    }

    /// Take the index of the next list, or the end of all lists; fails for that of a file.
    fn list_index(&mut self, data: &mut Cursor<'_>) -> Parsed<()> {
        match take!(self.read_index(data)?) {
            DONE => {}
            LAST => self.end(),
            ..=LISTS => self.next = Next::Entry,
            _ => return Err(Error::new("rsync sends a file where a list was expected")),
        }
        Ok(Some(()))
    }

    /// End the last list; appends the farewells to the answer.
    fn end(&mut self) {
        // The last list of an incremental sender ended the first phase.  Newer ones say farewell twice.
        let ended = usize::from(self.is_incremental);
        let farewells = if self.protocol < 31 { 1 } else { 2 };
        let count = PHASES.saturating_sub(ended).saturating_add(farewells);
        let frames = std::iter::repeat_n(DONE_FRAME, count);
        self.answer.extend(frames.flatten());
        self.next = Next::End;
    }

    /// Take an index as `read_ndx` does; 0 for that of a file, which the client does not expect.
    fn read_index(&mut self, data: &mut Cursor<'_>) -> Parsed<i64> {
        match take!(data.byte()) {
            0 => return Ok(Some(DONE)),
            0xff => {}
            _ => return Ok(Some(0)),
        }
        let number = match take!(data.byte()) {
            0xfe => {
                let [high, low] = take!(data.array());
                if high & 0x80 == 0 {
                    self.negative
                        .saturating_add(i64::from(u16::from_be_bytes([high, low])))
                } else {
                    let [second, third] = take!(data.array());
                    i64::from(u32::from_le_bytes([low, second, third, high & 0x7f]))
                }
            }
            difference => self.negative.saturating_add(i64::from(difference)),
        };
        self.negative = number;
        Ok(Some(number.saturating_neg()))
    }
}

/// Take a path, which may share its beginning with `last`, the path of the entry before.
fn path(data: &mut Cursor<'_>, flags: u16, last: &[u8]) -> Parsed<Vec<u8>> {
    let same = if flags & SAME_NAME == 0 {
        0
    } else {
        usize::from(take!(data.byte()))
    };
    let length = if flags & LONG_NAME == 0 {
        usize::from(take!(data.byte()))
    } else {
        take!(count(data)?) as usize
    };
    let Some(begin) = last
        .get(..same)
        .filter(|_| same.saturating_add(length) <= PATH_BYTES)
    else {
        return Err(malformed(last, "a path that is too long after this entry"));
    };
    let rest = take!(data.take_bytes(length));
    Ok(Some([begin, rest].concat()))
}

/// Take the ids of user and group where they differ from those before; returns the names of user and group, if sent
/// with them.
fn owners(
    data: &mut Cursor<'_>,
    flags: u16,
    (user, group): &mut (u32, u32),
) -> Parsed<[Option<Vec<u8>>; 2]> {
    let mut names = [None, None];
    let fields = [
        (SAME_USER, USER_NAME, user),
        (SAME_GROUP, GROUP_NAME, group),
    ];
    for (name, (same, named, id)) in names.iter_mut().zip(fields) {
        if flags & same == 0 {
            *id = take!(varint(data)?);
            if flags & named != 0 {
                *name = Some(take!(short_text(data)).to_vec());
            }
        }
    }
    Ok(Some(names))
}

/// Take a text of at most 255 bytes; `None` until all of it has arrived.
fn short_text<'a>(data: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let length = data.byte()?;
    data.take_bytes(usize::from(length))
}

fn malformed(path: &[u8], rule: &'static str) -> Error {
    Error::new(format!("rsync's list has {rule}")).within(huai_format::path::show(path))
}

fn too_long() -> Error {
    Error::new("rsync's list has too many entries")
}
