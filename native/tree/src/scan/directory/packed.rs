//! Packs leaves into little memory, to be unpacked in order.
//!
//! Each leaf is stored as the difference from the one before, which in a large directory is small:
//! names share prefixes, and attributes repeat.

use huai_git::cursor::Cursor;
use huai_sys::call::{FileType, Outcome, Status, Time};
use huai_sys::error::Errno;
use huai_sys::listing::reserve;

use super::leaf::Leaf;
use super::varint::{folded, put_number, take_number, unfolded};

/// The first byte of a leaf has a bit for each of these.
const SAME_ATTRIBUTES: u8 = 1;
const SYMLINK: u8 = 2;
/// The ctime equals the mtime.
const NEVER_CHANGED: u8 = 4;

/// The most bytes of a leaf besides its name, owners and target.
const FIXED: usize = 128;

/// Packed leaves.
#[derive(Debug)]
pub(crate) struct Packed(Vec<u8>);

/// A packer of leaves.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    leaves: usize,
    last: Last,
}

/// The previous leaf.
#[derive(Debug)]
struct Last {
    name: Vec<u8>,
    owners: Vec<u8>,
    status: Status,
}

impl Default for Last {
    fn default() -> Self {
        let never = Time {
            seconds: 0,
            nanoseconds: 0,
        };
        Self {
            name: Vec::new(),
            owners: Vec::new(),
            status: Status {
                kind: FileType::RegularFile,
                mode: 0,
                device: 0,
                mount: 0,
                inode: 0,
                links: 0,
                user: 0,
                group: 0,
                size: 0,
                blocks: 0,
                mtime: never,
                ctime: never,
            },
        }
    }
}

impl Packer {
    /// Return the number of packed leaves.
    pub(crate) fn len(&self) -> usize {
        self.leaves
    }

    /// Add the next leaf.
    pub(crate) fn add(&mut self, leaf: &Leaf<'_>) -> Outcome<()> {
        let Self {
            bytes,
            leaves,
            last,
        } = self;
        let text = leaf.name.len() + leaf.owners.len() + leaf.target.map_or(0, <[u8]>::len);
        reserve(bytes, FIXED + text)?;
        let (status, before) = (&leaf.status, &last.status);
        let is_same = attributes(status) == attributes(before) && leaf.owners == last.owners;
        let mut flags = 0;
        for (flag, is_set) in [
            (SAME_ATTRIBUTES, is_same),
            (SYMLINK, leaf.target.is_some()),
            (NEVER_CHANGED, status.ctime == status.mtime),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        bytes.push(flags);
        let common = common(&last.name, leaf.name);
        put_number(bytes, common as u64);
        put_text(bytes, &leaf.name[common..]);
        if !is_same {
            for number in attributes(status) {
                put_number(bytes, number);
            }
            put_text(bytes, leaf.owners);
            last.owners = leaf.owners.to_vec();
        }
        put_number(bytes, folded(status.inode, before.inode));
        put_number(bytes, status.size);
        put_time(bytes, status.mtime, before.mtime);
        if status.ctime != status.mtime {
            put_time(bytes, status.ctime, before.ctime);
        }
        if let Some(target) = leaf.target {
            put_text(bytes, target);
        }
        *leaves += 1;
        last.status = leaf.status;
        last.name.truncate(common);
        let rest = &leaf.name[common..];
        last.name.extend_from_slice(rest);
        Ok(())
    }

    /// Return the leaves that were added since the last call.
    pub(crate) fn finish_part(&mut self) -> Outcome<Packed> {
        let mut packed = Vec::new();
        packed
            .try_reserve_exact(self.bytes.len())
            .map_err(|_| Errno::NOMEM)?;
        packed.extend_from_slice(&self.bytes);
        self.clear();
        Ok(Packed(packed))
    }

    /// Drop all leaves.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.leaves = 0;
        self.last = Last::default();
    }
}

impl Packed {
    /// Return the number of bytes that the packed leaves take.
    pub(crate) fn size(&self) -> usize {
        self.0.len()
    }

    /// Call `visit` with every leaf, in order, until its first error; `IO` for damaged bytes.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Leaf<'_>) -> Outcome<()>) -> Outcome<()> {
        let mut from = Cursor::new(&self.0);
        let mut last = Last::default();
        while !from.is_empty() {
            visit(&last.take_next(&mut from).ok_or(Errno::IO)?)?;
        }
        Ok(())
    }
}

impl Last {
    /// Decode the next leaf, and become it; `None` for damaged bytes.
    fn take_next<'a, 'b: 'a>(&'a mut self, from: &mut Cursor<'b>) -> Option<Leaf<'a>> {
        let flags = from.byte()?;
        let common = take_number(from)?;
        self.name.truncate(usize::try_from(common).ok()?);
        self.name.extend_from_slice(take_text(from)?);
        let status = &mut self.status;
        if flags & SAME_ATTRIBUTES == 0 {
            status.device = take_number(from)?;
            for attribute in [
                &mut status.mode,
                &mut status.links,
                &mut status.user,
                &mut status.group,
            ] {
                *attribute = u32::try_from(take_number(from)?).ok()?;
            }
            self.owners = take_text(from)?.to_vec();
        }
        status.inode = unfolded(take_number(from)?, status.inode);
        status.size = take_number(from)?;
        status.mtime = take_time(from, status.mtime)?;
        status.ctime = if flags & NEVER_CHANGED == 0 {
            take_time(from, status.ctime)?
        } else {
            status.mtime
        };
        let is_symlink = flags & SYMLINK != 0;
        status.kind = if is_symlink {
            FileType::Symlink
        } else {
            FileType::RegularFile
        };
        Some(Leaf {
            name: &self.name,
            status: self.status,
            owners: &self.owners,
            target: if is_symlink {
                Some(take_text(from)?)
            } else {
                None
            },
        })
    }
}

/// Return the attributes that neighbours often share.
fn attributes(status: &Status) -> [u64; 5] {
    [
        status.device,
        u64::from(status.mode),
        u64::from(status.links),
        u64::from(status.user),
        u64::from(status.group),
    ]
}

/// Return the length of the common prefix.
fn common(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text);
}

fn take_text<'a>(from: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let length = take_number(from)?;
    from.take_bytes(usize::try_from(length).ok()?)
}

fn put_time(bytes: &mut Vec<u8>, time: Time, before: Time) {
    let [now, then] = [time, before].map(|each| u64::from_le_bytes(each.seconds.to_le_bytes()));
    put_number(bytes, folded(now, then));
    put_number(bytes, u64::from(time.nanoseconds));
}

fn take_time(from: &mut Cursor<'_>, before: Time) -> Option<Time> {
    let before = u64::from_le_bytes(before.seconds.to_le_bytes());
    let seconds = unfolded(take_number(from)?, before);
    Some(Time {
        seconds: i64::from_le_bytes(seconds.to_le_bytes()),
        nanoseconds: u32::try_from(take_number(from)?).ok()?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Make the status of a file with values that differ by `number`, some of them extreme.
    pub(in crate::scan::directory) fn status(number: u64) -> Status {
        let wide = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let time = |seconds: u64| Time {
            seconds: i64::from_le_bytes(seconds.to_le_bytes()),
            nanoseconds: u32::try_from(wide % 1_000_000_000).unwrap(),
        };
        Status {
            kind: FileType::RegularFile,
            mode: u32::try_from(wide % 0o10000).unwrap(),
            device: number / 3,
            mount: 0,
            inode: wide,
            links: u32::try_from(number % 2).unwrap(),
            user: u32::MAX,
            group: 0,
            size: wide >> (number % 64),
            blocks: 0,
            mtime: time(wide),
            ctime: time(if number % 4 == 0 { wide } else { number }),
        }
    }

    fn describe(leaf: &Leaf<'_>) -> String {
        format!("{leaf:?}")
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let name = |number: usize| vec![b"aab\xff"[number % 4]; 1 + number % 255];
        let names: Vec<_> = (0..300).map(name).collect();
        let leaves: Vec<Leaf<'_>> = (0..)
            .zip(&names)
            .map(|(number, name)| {
                let mut status = status(number / 2);
                let target = (number % 5 == 0).then_some(&b"somewhere"[..]);
                if target.is_some() {
                    status.kind = FileType::Symlink;
                }
                Leaf {
                    name,
                    status,
                    owners: if number % 7 == 0 { b"" } else { b"\tuwww\tg#7" },
                    target,
                }
            })
            .collect();
        let mut packer = Packer::default();
        // Packed twice, because nothing of the first time may remain.
        for _ in 0..2 {
            for leaf in &leaves {
                packer.add(leaf).unwrap();
            }
            assert_eq!(packer.len(), leaves.len());
            let mut unpacked = Vec::new();
            let take = |leaf: &Leaf<'_>| {
                unpacked.push(describe(leaf));
                Ok(())
            };
            packer.finish_part().unwrap().for_each(take).unwrap();
            assert_eq!(unpacked, leaves.iter().map(describe).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_take_little_room() {
        let mut packer = Packer::default();
        for number in 0..1000u32 {
            let mut status = status(4);
            status.inode += u64::from(number);
            let name = format!("file-{number:07}.tar.gz").into_bytes();
            let owners = b"\tuwww";
            let target = None;
            let leaf = Leaf {
                name: &name,
                status,
                owners,
                target,
            };
            packer.add(&leaf).unwrap();
        }
        assert!(packer.finish_part().unwrap().size() < 40 * 1000);
    }
}
