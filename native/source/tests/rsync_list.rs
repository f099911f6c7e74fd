//! Checks the decoder of rsync's file list with bytes composed here, as rsync's `flist.c` and `io.c`
//! write them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::indexing_slicing, reason = "tests cut known bytes")]

use std::io::Cursor;

use huai_git::error::Result;
use huai_source::entry::EntryType;
use huai_source::entry_list::{EntryList, EntrySummary};
use huai_source::rsync::RsyncList;
use proptest::collection::vec;
use proptest::prelude::*;

// Flags of an entry, as rsync.h names them.
const SAME_MODE: u16 = 1 << 1;
const EXTENDED: u16 = 1 << 2;
const SAME_UID: u16 = 1 << 3;
const SAME_GID: u16 = 1 << 4;
const SAME_NAME: u16 = 1 << 5;
const LONG_NAME: u16 = 1 << 6;
const SAME_TIME: u16 = 1 << 7;
const HARDLINK: u16 = 1 << 9;
const USER_NAME: u16 = 1 << 10;
const GROUP_NAME: u16 = 1 << 11;
const FIRST: u16 = 1 << 12;
const NANOSECONDS: u16 = 1 << 13;
const SAME_OWNER: u16 = SAME_UID | SAME_GID;

const FILE: u32 = 0o100_644;
const DIRECTORY: u32 = 0o040_755;
const SYMLINK: u32 = 0o120_777;

type Entries = EntryList<Cursor<Vec<u8>>>;

/// The data of a sender.
#[derive(Debug, Default, Clone)]
struct Data(Vec<u8>);

impl Data {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Write the flags of an entry, and a name of which `same` bytes are those of the last one.
    fn name(self, flags: u16, same: u8, name: &str) -> Self {
        let name_flags = if same > 0 { SAME_NAME } else { 0 };
        let long = if name.len() > 255 { LONG_NAME } else { 0 };
        let flags = flags | EXTENDED | name_flags | long;
        let mut data = self.bytes(&flags.to_le_bytes());
        if same > 0 {
            data = data.bytes(&[same]);
        }
        data = if long == 0 {
            data.bytes(&[u8::try_from(name.len()).unwrap()])
        } else {
            data.varint(u32::try_from(name.len()).unwrap())
        };
        data.bytes(name.as_bytes())
    }

    /// Write a number below 128 in one byte, or another one in five.
    fn varint(self, number: u32) -> Self {
        if number < 0x80 {
            return self.bytes(&[u8::try_from(number).unwrap()]);
        }
        self.bytes(&[0xf0]).bytes(&number.to_le_bytes())
    }

    /// Write a number of less than 2^20 as `write_varlong30` does, with three bytes.
    fn size(self, number: u32) -> Self {
        let [low, middle, high, _] = number.to_le_bytes();
        self.bytes(&[high, low, middle])
    }

    fn time(self, seconds: u32) -> Self {
        let [first, second, third, high] = seconds.to_le_bytes();
        self.bytes(&[high, first, second, third])
    }

    fn mode(self, mode: u32) -> Self {
        self.bytes(&mode.to_le_bytes())
    }

    fn ids(self, user: u32, group: u32) -> Self {
        self.varint(user).varint(group)
    }

    /// Write a whole entry of this mode, of size 5 and time 9, owned by root.
    fn entry(self, mode: u32, name: &str) -> Self {
        self.name(0, 0, name).size(5).time(9).mode(mode).ids(0, 0)
    }

    /// Frame the data after the flags and the seed, in frames of at most `most` bytes.
    fn stream(&self, flags: &[u8], most: usize) -> Vec<u8> {
        let mut stream = [flags, &[1, 2, 3, 4]].concat();
        for part in self.0.chunks(most) {
            let length = u32::try_from(part.len()).unwrap() | 7 << 24;
            stream.extend_from_slice(&length.to_le_bytes());
            stream.extend_from_slice(part);
        }
        stream
    }
}

const AT_ONCE: &[u8] = &[0];
const INCREMENTAL: &[u8] = &[1];
/// The end of a list that is sent at once, and of both lists of names.
const END: &[u8] = &[0, 0, 0];

struct Decoded {
    entries: Entries,
    list: RsyncList,
    answer: Vec<u8>,
}

impl Decoded {
    fn summaries(&mut self) -> Vec<EntrySummary> {
        self.entries.summaries().unwrap()
    }

    fn paths(&mut self) -> Vec<String> {
        let text = |it: EntrySummary| String::from_utf8_lossy(&it.0).into_owned();
        self.summaries().into_iter().map(text).collect()
    }
}

/// Feed a stream to a new list in parts of `size` bytes.
fn decode(protocol: u32, stream: &[u8], size: usize) -> Result<Decoded> {
    let mut entries = Entries::new(Cursor::default(), 1000);
    let mut list = RsyncList::new(protocol)?;
    let mut answer = Vec::new();
    for part in stream.chunks(size.max(1)) {
        answer.extend(list.feed(part, &mut entries)?);
    }
    Ok(Decoded {
        entries,
        list,
        answer,
    })
}

/// Decode the data of a complete list that is sent at once.
fn decoded(data: &Data) -> Decoded {
    let stream = data.clone().bytes(END).stream(AT_ONCE, 7);
    let decoded = decode(31, &stream, usize::MAX).unwrap();
    assert!(decoded.list.is_complete() && !decoded.list.is_partial());
    decoded
}

/// Return the message with which a list that is sent at once is refused.
fn refused(data: &Data) -> String {
    let stream = data.stream(AT_ONCE, 1000);
    decode(31, &stream, usize::MAX).err().unwrap().to_string()
}

#[test]
fn fields_that_are_the_same_are_those_of_the_entry_before() {
    let data = Data::default()
        .entry(DIRECTORY, ".")
        .name(USER_NAME | GROUP_NAME, 0, "pool")
        .size(0)
        .time(9)
        .mode(DIRECTORY)
        .varint(7)
        .bytes(b"\x03two")
        .varint(8)
        .bytes(b"\x04four")
        .name(SAME_TIME | SAME_OWNER, 4, "/a")
        .size(0x1_2345)
        .mode(FILE)
        .name(SAME_MODE | SAME_TIME | SAME_UID | NANOSECONDS, 5, "b")
        .size(2)
        .varint(999)
        .varint(0)
        .name(SAME_MODE | SAME_OWNER, 5, "c")
        .size(3)
        .time(0x1234_5678)
        .name(SAME_OWNER, 5, "link")
        .size(0)
        .time(1)
        .mode(SYMLINK)
        .varint(6)
        .bytes(b"target");
    let second = 1_000_000_000;
    assert_eq!(
        decoded(&data).summaries(),
        [
            (b"pool".to_vec(), EntryType::Directory, 0, 9 * second),
            (b"pool/a".to_vec(), EntryType::File, 0x1_2345, 9 * second),
            (b"pool/b".to_vec(), EntryType::File, 2, 9 * second + 999),
            (b"pool/c".to_vec(), EntryType::File, 3, 0x1234_5678 * second),
            (b"pool/link".to_vec(), EntryType::Symlink, 0, second),
        ]
    );
}

#[test]
fn an_abbreviated_hardlink_hands_its_attributes_on() {
    // The entry after it has the time, mode and owner of the first name, not of the one between.
    let data = Data::default()
        .entry(DIRECTORY, ".")
        .name(HARDLINK | FIRST, 0, "first")
        .size(5)
        .time(100)
        .mode(0o100_600)
        .ids(3, 4)
        .name(0, 0, "other")
        .size(6)
        .time(200)
        .mode(FILE)
        .ids(0, 0)
        .name(HARDLINK, 0, "second")
        .varint(1)
        .name(SAME_TIME | SAME_MODE | SAME_OWNER, 0, "third")
        .size(7);
    let objects = std::cell::RefCell::new(Vec::new());
    let mut decoded = decoded(&data);
    let time = |seconds: i64| seconds * 1_000_000_000;
    assert_eq!(
        decoded.summaries(),
        [
            (b"first".to_vec(), EntryType::File, 5, time(100)),
            (b"other".to_vec(), EntryType::File, 6, time(200)),
            (b"second".to_vec(), EntryType::File, 5, time(100)),
            (b"third".to_vec(), EntryType::File, 7, time(100)),
        ]
    );
    decoded.entries.write_tree(&mut Blobs(&objects)).unwrap();
    let texts = objects.borrow().join(&b'\n');
    let line = |text: &str| {
        let is_written = texts
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        assert!(
            is_written,
            "{text:?} in {:?}",
            String::from_utf8_lossy(&texts)
        );
    };
    line("first\t5\t100\tm600\tu#3\tg#4\n");
    line("second\t5\t100\tm600\tu#3\tg#4\thfirst\n");
    line("third\t7\t100\tm600\tu#3\tg#4\n");
}

/// A writer that keeps all objects.
struct Blobs<'a>(&'a std::cell::RefCell<Vec<Vec<u8>>>);

impl huai_format::snapshots::ObjectWriter for Blobs<'_> {
    fn write(
        &mut self,
        kind: huai_git::object::Kind,
        content: &[u8],
    ) -> Result<huai_git::oid::Oid> {
        self.0.borrow_mut().push(content.to_vec());
        huai_git::oid::Oid::of(kind, content)
    }
}

#[test]
fn names_may_be_long() {
    let long = "d".repeat(200) + "/" + &"e".repeat(100);
    let data = Data::default()
        .entry(DIRECTORY, ".")
        .entry(DIRECTORY, &"d".repeat(200))
        .entry(FILE, &long)
        .name(SAME_TIME | SAME_MODE | SAME_OWNER, 255, "x")
        .size(1);
    let expected = "d".repeat(200) + "/" + &"e".repeat(54) + "x";
    let paths = decoded(&data).paths();
    assert!(
        paths.contains(&long) && paths.contains(&expected),
        "{paths:?}"
    );
    let short = Data::default().entry(FILE, "ab").name(0, 3, "c").size(1);
    assert!(refused(&short).contains("too long"));
    let huge = Data::default().bytes(&[0x44, 0]).varint(5000);
    assert!(refused(&huge).contains("too long"));
}

#[test]
fn an_incremental_sender_sends_a_list_a_directory() {
    let data = Data::default()
        .entry(DIRECTORY, ".")
        .entry(DIRECTORY, "a")
        .name(HARDLINK | FIRST, 0, "b")
        .size(5)
        .time(9)
        .mode(FILE)
        .ids(0, 0)
        .bytes(&[0])
        // Index -101 - 1 of the directory `a`: the difference to the last negative one, 1.
        .bytes(&[0xff, 101])
        // The first name is in another list, so that the attributes follow.
        .name(HARDLINK, 0, "a/b")
        .varint(3)
        .size(5)
        .time(9)
        .mode(FILE)
        .ids(0, 0)
        .name(
            HARDLINK | FIRST | SAME_TIME | SAME_MODE | SAME_OWNER,
            2,
            "c",
        )
        .size(5)
        .name(HARDLINK, 2, "d")
        .varint(6)
        .bytes(&[0]);
    let last = [0xff, 0xfe, 0x80, 0x02, 0, 0]; // NDX_FLIST_EOF, -2
    let stream = data.clone().bytes(&last).stream(INCREMENTAL, 5);
    for size in [1, 3, usize::MAX] {
        for protocol in [30, 31] {
            let mut decoded = decode(protocol, &stream, size).unwrap();
            assert!(decoded.list.is_complete());
            assert_eq!(decoded.paths(), ["a", "b", "a/b", "a/c", "a/d"]);
            // Two lists, two phases, and farewells: each as a frame.
            let frames = decoded.answer.chunks(5);
            assert!(frames.clone().all(|frame| frame == [1, 0, 0, 7, 0]));
            assert_eq!(frames.len(), if protocol == 30 { 5 } else { 6 });
        }
    }
    let file = data.bytes(&[0x01]).stream(INCREMENTAL, 1000);
    assert!(decode(31, &file, usize::MAX).is_err());
}

#[test]
fn protocol_30_writes_a_number_for_pipes() {
    let data = Data::default()
        .entry(DIRECTORY, ".")
        .entry(0o010_644, "pipe")
        .varint(0)
        .varint(0)
        .entry(FILE, "z")
        .bytes(END);
    let mut old = decode(30, &data.stream(AT_ONCE, 9), usize::MAX).unwrap();
    assert!(old.list.is_complete());
    assert_eq!(old.paths(), ["z"]);
    assert_eq!(old.entries.skipped(), 1);
    let device = Data::default()
        .entry(DIRECTORY, ".")
        .entry(0o020_644, "tty")
        .varint(4)
        .varint(1)
        .entry(0o140_644, "socket")
        .entry(FILE, "z");
    assert_eq!(decoded(&device).paths(), ["z"]);
    for protocol in [0, 29, 41] {
        assert!(RsyncList::new(protocol).is_err());
    }
}

#[test]
fn a_list_may_end_with_an_error() {
    let data = Data::default().entry(DIRECTORY, ".").bytes(&[4, 0x10, 1]);
    let stream = data.bytes(&[0, 0]).stream(AT_ONCE, 9);
    let decoded = decode(31, &stream, usize::MAX).unwrap();
    assert!(decoded.list.is_complete() && decoded.list.is_partial());
}

#[test]
fn malformed_entries_are_refused() {
    let root = || Data::default().entry(DIRECTORY, ".");
    let timed = |flags| root().name(flags, 0, "x").size(1).time(1);
    for (data, rule) in [
        (timed(0).mode(0o050_644).ids(0, 0), "an unknown type"),
        (
            timed(NANOSECONDS).varint(1_000_000_000),
            "a fraction of more than a second",
        ),
        (root().name(HARDLINK, 0, "x").varint(9), "refers to no file"),
        (root().name(HARDLINK, 0, "x").bytes(&[0xf8]), "too large"),
        (timed(0).mode(SYMLINK).ids(0, 0).varint(70_000), "too long"),
        (root().entry(FILE, "../x"), "an unsafe path"),
        (root().entry(FILE, "/x"), "an unsafe path"),
        (
            root().name(0, 0, "x").size(1).bytes(&[0xfe; 9]),
            "too large",
        ),
    ] {
        let message = refused(&data);
        assert!(message.contains(rule), "{rule}: {message}");
    }
    let flags = [0x80, 0x80];
    assert!(decode(31, &root().stream(&flags, 99), usize::MAX).is_err());
}

/// A list with something of all.
fn sample() -> Vec<u8> {
    let data = Data::default()
        .entry(DIRECTORY, ".")
        .name(HARDLINK | FIRST, 0, "first")
        .size(5)
        .time(100)
        .mode(FILE)
        .ids(3, 4)
        .name(HARDLINK, 0, "second")
        .varint(1)
        .name(SAME_TIME | SAME_OWNER, 0, "link")
        .size(0)
        .mode(SYMLINK)
        .varint(1)
        .bytes(b"t")
        .bytes(&[0])
        .varint(3)
        .bytes(b"\x03abc\0")
        .varint(4)
        .bytes(b"\x03abc\0");
    data.stream(AT_ONCE, 11)
}

#[test]
fn a_list_may_be_cut_anywhere() {
    let stream = sample();
    for end in 0..stream.len() {
        let cut = decode(31, &stream[..end], usize::MAX).unwrap();
        assert!(!cut.list.is_complete(), "{end}");
    }
    let paths = ["first", "second", "link"];
    for size in 1..=stream.len() {
        let mut decoded = decode(31, &stream, size).unwrap();
        assert!(decoded.list.is_complete());
        assert_eq!(decoded.paths(), paths, "{size}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any bytes give entries or an error, and the same ones however they are cut.
    #[test]
    fn hostile_bytes_give_entries_or_an_error(
        protocol in 30..=31_u32,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        tail in vec(any::<u8>(), 0..40),
        size in 1..64_usize,
    ) {
        let mut stream = sample();
        for (place, byte) in changes {
            let place = place.index(stream.len());
            stream[place] = byte;
        }
        stream.extend(tail);
        let outcome = |size| {
            decode(protocol, &stream, size).map(|mut it| (it.list.is_complete(), it.summaries()))
        };
        prop_assert_eq!(outcome(size).ok(), outcome(usize::MAX).ok());
    }
}
