//! Reads the leaves of a listing as a manifest states them (FORMAT.md, "Lines").
//!
//! Reads what this machine committed.  Harmful and meaningless lines are refused; only `huai-server
//! check` verifies that each line has its canonical spelling.

use std::collections::HashMap;

use huai_format::entry::{FILE_MODE, SYMLINK_MODE};
use huai_format::limits::{NAME_BYTES, PATH_BYTES, TARGET_BYTES};
use huai_format::path::parent;
use rustix::io::Errno;

use super::attributes::Attributes;
use super::entry::{Entry, Kind};
use crate::sys::call::Time;
use crate::sys::change::LEAVE;

const NANOSECOND_DIGITS: usize = 9;

/// The numbers of owners by their fields: `u` or `g` and the escaped name.
pub(super) type OwnerNumbers = HashMap<Vec<u8>, u32>;

/// A reader of the lines of one listing.
pub(super) struct LeafLines<'a> {
    /// The listing's path.
    directory: &'a [u8],
    /// The remaining lines.
    rest: &'a [u8],
    /// The default user and group; both `LEAVE` to ignore the owners in lines.
    usual: (u32, u32),
    owners: &'a OwnerNumbers,
    /// The name in the current line, as far as it was read.
    name: Vec<u8>,
    /// The target, or the path of the leader.
    other: Vec<u8>,
}

impl<'a> LeafLines<'a> {
    pub(super) fn new(
        directory: &'a [u8],
        text: &'a [u8],
        usual: (u32, u32),
        owners: &'a OwnerNumbers,
    ) -> Self {
        Self {
            directory,
            rest: text,
            usual,
            owners,
            name: Vec::new(),
            other: Vec::new(),
        }
    }

    /// Return the name of the last line, or its beginning.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Return the next name and its entry; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], Entry<'_>)>, Errno> {
        self.name.clear();
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.read_line().ok_or(Errno::BADMSG).map(Some)
    }

    /// Read a line; `None` if it is malformed.
    fn read_line(&mut self) -> Option<(&[u8], Entry<'_>)> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..)?;
        let mut fields = line.split(|byte| *byte == b'\t');
        unescape(fields.next()?, &mut self.name, NAME_BYTES)?;
        if self.name.contains(&b'/') || matches!(&self.name[..], b"." | b"..") {
            return None;
        }
        let value = fields.next()?;
        let size = match value.strip_prefix(b">") {
            Some(target) => {
                unescape(target, &mut self.other, TARGET_BYTES)?;
                None
            }
            None => Some(u64::try_from(number(value)?).ok()?),
        };
        let (user, group) = self.usual;
        let mut attributes = Attributes {
            user,
            group,
            mode: size.map_or(SYMLINK_MODE, |_| FILE_MODE).into(),
            mtime: time(fields.next()?)?,
        };
        let mut is_link = false;
        for field in fields {
            match field.split_first()? {
                (b'm', mode) => attributes.mode = octal(mode)?,
                (b'u', _) => attributes.user = *self.owners.get(field)?,
                (b'g', _) => attributes.group = *self.owners.get(field)?,
                (b'h', leader) => {
                    unescape(leader, &mut self.other, PATH_BYTES)?;
                    resolve(self.directory, &mut self.other)?;
                    is_link = true;
                }
                _ => {} // a later version's, which may be ignored
            }
        }
        if self.usual == (LEAVE, LEAVE) {
            (attributes.user, attributes.group) = (LEAVE, LEAVE);
        }
        let kind = match size {
            _ if is_link => Kind::Link(&self.other),
            Some(size) => Kind::File(size),
            None => Kind::Symlink(&self.other),
        };
        Some((&self.name, Entry { kind, attributes }))
    }
}

/// Unescape `text`; `None` if empty, too long, or not in canonical spelling.
fn unescape(text: &[u8], to: &mut Vec<u8>, room: usize) -> Option<()> {
    to.clear();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, after) {
            (b'\\', [b'x', high, low, after @ ..]) => (digit(*high)? << 4 | digit(*low)?, after),
            (b'\\', _) => return None,
            (byte, after) => (*byte, after),
        };
        if byte == 0 {
            return None;
        }
        to.push(byte);
        rest = after;
    }
    (!to.is_empty() && to.len() <= room).then_some(())
}

fn digit(spelled: u8) -> Option<u8> {
    match spelled {
        b'0'..=b'9' => Some(spelled - b'0'),
        b'a'..=b'f' => Some(spelled - b'a' + 10),
        _ => None,
    }
}

fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn octal(text: &[u8]) -> Option<u32> {
    let mode = u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok()?;
    (mode <= 0o7777).then_some(mode)
}

fn time(text: &[u8]) -> Option<Time> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let seconds = number(parts.next()?)?;
    let mut nanoseconds = 0;
    if let Some(fraction) = parts.next() {
        if fraction.len() > NANOSECOND_DIGITS || !fraction.iter().all(u8::is_ascii_digit) {
            return None;
        }
        for place in 0..NANOSECOND_DIGITS {
            let digit = fraction.get(place).map_or(0, |digit| digit - b'0');
            nanoseconds = nanoseconds * 10 + u32::from(digit);
        }
    }
    Some(Time {
        seconds,
        nanoseconds,
    })
}

/// Make a path relative to `directory` one from the root; `None` if it leads out or is too long.
fn resolve(directory: &[u8], path: &mut Vec<u8>) -> Option<()> {
    let (mut above, mut rest) = (directory, &path[..]);
    while let Some(further) = rest.strip_prefix(b"../") {
        if above.is_empty() {
            return None;
        }
        above = parent(above);
        rest = further;
    }
    let resolved = match above {
        b"" => rest.to_vec(),
        _ => [above, b"/", rest].concat(),
    };
    if rest.is_empty() || resolved.len() > PATH_BYTES {
        return None;
    }
    *path = resolved;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{Kind, LEAVE, LeafLines, OwnerNumbers, PATH_BYTES, TARGET_BYTES};
    use crate::attr_tree::attributes::Attributes;

    const ROOT: (u32, u32) = (0, 0);

    fn owners() -> OwnerNumbers {
        OwnerNumbers::from([(b"uann".to_vec(), 7), (b"gftp\\x20users".to_vec(), 8)])
    }

    /// Describe the only line of the listing at `a/b`; `None` if it is refused.
    fn read(line: &[u8], usual: (u32, u32)) -> Option<(Vec<u8>, String, Attributes)> {
        let owners = owners();
        let text = [line, b"\n"].concat();
        let mut lines = LeafLines::new(b"a/b", &text, usual, &owners);
        let (name, entry) = lines.next().ok()??;
        let display = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
        let kind = match entry.kind {
            Kind::File(size) => format!("file of {size}"),
            Kind::Symlink(target) => format!("symlink to {}", display(target)),
            Kind::Link(leader) => format!("link to {}", display(leader)),
            Kind::Directory => "directory".to_owned(),
        };
        let description = (name.to_vec(), kind, entry.attributes);
        assert!(matches!(lines.next(), Ok(None)));
        Some(description)
    }

    #[test]
    fn each_kind_of_leaf() {
        for (line, name, kind) in [
            (&b"f\t5\t1"[..], &b"f"[..], "file of 5"),
            (b"\\x0a\\xff\t0\t1", b"\n\xff", "file of 0"),
            (b"s\t>../x\\x09y\t1", b"s", "symlink to ../x\ty"),
            (b"l\t5\t1\thk", b"l", "link to a/b/k"),
            (b"l\t5\t1\th../k", b"l", "link to a/k"),
            (b"l\t5\t1\th../../k/m", b"l", "link to k/m"),
            (b"f\t5\t1\tzlater", b"f", "file of 5"),
        ] {
            let (found, said, _) = read(line, ROOT).unwrap();
            assert_eq!((&*found, &*said), (name, kind));
        }
    }

    #[test]
    fn attributes_and_what_stands_for_none() {
        let (_, _, plain) = read(b"f\t0\t-1.05", ROOT).unwrap();
        assert_eq!((plain.user, plain.group, plain.mode), (0, 0, 0o644));
        assert_eq!(
            (plain.mtime.seconds, plain.mtime.nanoseconds),
            (-1, 50_000_000)
        );
        let line = b"f\t0\t1\tm4755\tuann\tgftp\\x20users";
        let (_, _, all) = read(line, ROOT).unwrap();
        assert_eq!((all.user, all.group, all.mode), (7, 8, 0o4755));
        let (_, _, left) = read(line, (LEAVE, LEAVE)).unwrap();
        assert_eq!((left.user, left.group), (LEAVE, LEAVE));
        let (_, _, symlink) = read(b"s\t>x\t1", ROOT).unwrap();
        assert_eq!(symlink.mode, 0o777);
    }

    #[test]
    fn what_could_do_harm_or_has_no_meaning_is_refused() {
        let far = [b"l\t5\t1\th".to_vec(), b"x".repeat(PATH_BYTES - 1)].concat();
        let long = [
            b"s\t>".to_vec(),
            b"x".repeat(TARGET_BYTES + 1),
            b"\t1".to_vec(),
        ]
        .concat();
        let lines: [&[u8]; 22] = [
            b"",
            b"f",
            b"f\t5",
            b"\t5\t1",
            b".\t5\t1",
            b"..\t5\t1",
            b"a/b\t5\t1",
            b"\\x2e\\x2e\t5\t1",
            b"\\x00\t5\t1",
            b"\\y\t5\t1",
            b"f\t-5\t1",
            b"f\t5\t1.0000000001",
            b"f\t5\t1.x",
            b"f\t5\t1\tm8",
            b"f\t5\t1\tm10000",
            b"f\t5\t1\tuunknown",
            b"f\t5\t1\t",
            b"s\t>\t1",
            b"l\t5\t1\th../../../k",
            b"l\t5\t1\th../",
            &far,
            &long,
        ];
        for line in lines {
            assert!(
                read(line, ROOT).is_none(),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
        let owners = owners();
        let mut cut = LeafLines::new(b"", b"f\t5\t1", ROOT, &owners);
        assert!(cut.next().is_err());
    }
}
