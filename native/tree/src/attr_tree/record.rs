//! The instructions for a maker, as bytes: `huai_server/fallback/sparse/records.py` packs them.
//!
//! A record is a header in native byte order, then its name and its second name, each
//! ended by NUL, without padding.

use huai_sys::call::Time;

use super::attributes::Attributes;

/// One instruction.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) operation: Operation,
    pub(super) size: i64,
    pub(super) attributes: Attributes,
    pub(super) name: &'a [u8],
    /// The second name.
    pub(super) other: Option<&'a [u8]>,
}

/// The operations; the numbers are those of `records.py`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Enter the directory at the path `name`.
    Enter,
    /// Make an empty file of `size` bytes in the current directory.
    File,
    /// Make a symlink to `other`.
    Symlink,
    /// Make another name of the file at the path `other`.
    Link,
    /// Make an empty directory; without a building folder its attributes come later.
    Directory,
    /// Remove `name` from the current directory; a directory moves to the building folder.
    Remove,
    /// Make the leaves of the listing at the path `name`, which is entered, from the lines `other`.
    Leaves,
    /// Set the attributes of the directory at the path `name`.
    Attributes,
    /// Move the directory at the path `name` to the path `other`.
    Move,
    /// Define the number of an owner, whose `name` begins with u or g.
    Owner,
}

impl Operation {
    fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Enter,
            2 => Self::File,
            3 => Self::Symlink,
            4 => Self::Link,
            5 => Self::Directory,
            6 => Self::Remove,
            7 => Self::Leaves,
            8 => Self::Attributes,
            9 => Self::Move,
            10 => Self::Owner,
            _ => return None,
        })
    }
}

/// Read the first record, and return the rest; `None` if it is incomplete.
pub(super) fn take_record(records: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (size, rest) = long(records)?;
    let (seconds, rest) = long(rest)?;
    let (nanoseconds, rest) = word(rest)?;
    let (user, rest) = word(rest)?;
    let (group, rest) = word(rest)?;
    let (mode, rest) = word(rest)?;
    let (operation, rest) = word(rest)?;
    let (name_bytes, rest) = word(rest)?;
    let (other_bytes, rest) = word(rest)?;
    let (_, rest) = word(rest)?;
    let (name, rest) = text(rest, name_bytes)?;
    let (other, rest) = match other_bytes {
        0 => (None, rest),
        _ => text(rest, other_bytes).map(|(other, rest)| (Some(other), rest))?,
    };
    let mtime = Time {
        seconds,
        nanoseconds,
    };
    let record = Record {
        operation: Operation::from_number(operation)?,
        size,
        attributes: Attributes {
            user,
            group,
            mode,
            mtime,
        },
        name,
        other,
    };
    Some((record, rest))
}

fn long(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((i64::from_ne_bytes(*number), rest))
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_ne_bytes(*number), rest))
}

fn text(bytes: &[u8], length: u32) -> Option<(&[u8], &[u8])> {
    let (text, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    match text {
        [text @ .., 0] => Some((text, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Operation, take_record};

    /// Pack a record as `records.py` does; the lengths may be wrong.
    fn record(operation: u32, texts: &[u8], lengths: [u32; 2]) -> Vec<u8> {
        let longs: [i64; 2] = [1 << 40, -1];
        let words = [5, 1000, 100, 0o644, operation, lengths[0], lengths[1], 0];
        let longs = longs.iter().flat_map(|long| long.to_ne_bytes());
        let words = words.iter().flat_map(|word: &u32| word.to_ne_bytes());
        longs.chain(words).chain(texts.iter().copied()).collect()
    }

    #[test]
    fn records_come_back_one_after_the_other() {
        let link = record(4, b"name\0d/first\0", [5, 8]);
        let file = record(2, b"\xff\0", [2, 0]);
        let records = [link, file].concat();
        let (first, rest) = take_record(&records).unwrap();
        assert_eq!(first.operation, Operation::Link);
        assert_eq!(
            (first.name, first.other),
            (&b"name"[..], Some(&b"d/first"[..]))
        );
        let (second, rest) = take_record(rest).unwrap();
        assert_eq!(second.operation, Operation::File);
        assert_eq!((second.name, second.other), (&b"\xff"[..], None));
        assert_eq!(second.size, 1 << 40);
        let attributes = second.attributes;
        assert_eq!(
            (attributes.user, attributes.group, attributes.mode),
            (1000, 100, 0o644)
        );
        assert_eq!(
            (attributes.mtime.seconds, attributes.mtime.nanoseconds),
            (-1, 5)
        );
        assert!(rest.is_empty());
    }

    #[test]
    fn a_part_of_a_record_is_none() {
        let complete = record(3, b"name\0target\0", [5, 7]);
        assert!(take_record(&complete).is_some());
        for end in 0..complete.len() {
            assert!(take_record(&complete[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        for (operation, texts, lengths) in [
            (0, &b"name\0"[..], [5, 0]),
            (11, b"name\0", [5, 0]),
            (2, b"name!", [5, 0]),
            (2, b"name\0", [4, 0]),
            (3, b"name\0target!", [5, 7]),
            (2, b"name\0", [u32::MAX, 0]),
            (2, b"", [0, 0]),
        ] {
            let record = record(operation, texts, lengths);
            assert!(
                take_record(&record).is_none(),
                "{operation} {texts:?} {lengths:?}"
            );
        }
    }
}
