//! Reads the names of one directory, sorted.

use std::cmp::Ordering;
use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::call;

/// The bytes of a getdents64(2) call.
const RAW_BYTES: usize = 64 << 10;
/// The most bytes that are kept from one directory to the next.
const KEPT_BYTES: usize = 1 << 20;

/// Names with their types, in memory that is reused for the next directory.
#[derive(Debug, Default)]
pub struct Names {
    raw: Vec<u8>,
    /// The names, each after a byte for its type, and ended by NUL.
    text: Vec<u8>,
    /// The length of the prefix that all names share.
    common: usize,
    keys: Vec<Key>,
    /// The start of each name, in the order of the names: a directory may hold millions.
    order: Vec<u32>,
}

/// A name during sorting.
#[derive(Debug, Clone, Copy)]
struct Key {
    /// The bytes after the shared prefix, which nearly always decide a comparison.
    next: u64,
    begin: u32,
    length: u16,
}

impl Names {
    /// Read an open directory from its current position; keeps the names for which `wanted` is
    /// true, sorted and each once.
    pub fn read(
        &mut self,
        directory: BorrowedFd<'_>,
        mut wanted: impl FnMut(&[u8], FileType) -> bool,
    ) -> Result<(), Errno> {
        self.clear();
        let mut raw = std::mem::take(&mut self.raw);
        reserve(&mut raw, RAW_BYTES)?;
        call::read_names(directory, raw.spare_capacity_mut(), |name, kind| {
            if wanted(name.to_bytes(), kind) {
                self.add(name, kind)?;
            }
            Ok(())
        })?;
        self.raw = raw;
        self.sort()
    }

    /// Add a name, and shorten the prefix that all share.
    fn add(&mut self, name: &CStr, kind: FileType) -> Result<(), Errno> {
        let bytes = name.to_bytes_with_nul();
        reserve(&mut self.text, bytes.len() + 1)?;
        reserve(&mut self.keys, 1)?;
        let key = Key {
            next: 0,
            begin: u32::try_from(self.text.len()).map_err(|_| Errno::NOMEM)?,
            length: u16::try_from(bytes.len() - 1).map_err(|_| Errno::NAMETOOLONG)?,
        };
        let first = self.keys.first();
        self.common = first.map_or(usize::from(key.length), |first| {
            let pairs = first.name(&self.text).iter().zip(bytes);
            let same = pairs
                .take(self.common)
                .take_while(|(one, other)| one == other);
            same.count()
        });
        self.keys.push(key);
        self.text.push(byte_of(kind));
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    /// Sort the names, and drop repeated ones.
    fn sort(&mut self) -> Result<(), Errno> {
        let Self {
            text,
            common,
            keys,
            order,
            ..
        } = self;
        for key in &mut *keys {
            let mut next = [0; 8];
            let rest = key.name(text).get(*common..).unwrap_or_default();
            for (to, from) in next.iter_mut().zip(rest) {
                *to = *from;
            }
            key.next = u64::from_be_bytes(next);
        }
        keys.sort_unstable_by(|one, other| compare(text, one, other));
        // A damaged directory may list a name twice.
        keys.dedup_by(|one, other| compare(text, one, other) == Ordering::Equal);
        order.try_reserve(keys.len()).map_err(|_| Errno::NOMEM)?;
        order.extend(keys.iter().map(|key| key.begin));
        keys.clear();
        keys.shrink_to(KEPT_BYTES / size_of::<Key>());
        Ok(())
    }

    /// Return the number of names.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// Return every name in order, with its listed type.
    pub fn iter(&self) -> impl Iterator<Item = (&CStr, FileType)> {
        let entry = |begin: &u32| {
            let (kind, rest) = self.text.get(*begin as usize..)?.split_first()?;
            Some((CStr::from_bytes_until_nul(rest).ok()?, type_of(*kind)))
        };
        self.order.iter().filter_map(entry)
    }

    fn clear(&mut self) {
        self.text.clear();
        self.keys.clear();
        self.order.clear();
    }

    /// Forget the names, and release the memory that one exceptional directory needed.
    pub fn relax(&mut self) {
        self.clear();
        self.order.shrink_to(KEPT_BYTES / size_of::<u32>());
        self.text.shrink_to(KEPT_BYTES);
    }
}

/// Allocate room for `more` items, or return an error: a vector that grows by itself aborts
/// the process.
pub fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), Errno> {
    vector.try_reserve(more).map_err(|_| Errno::NOMEM)
}

impl Key {
    fn name<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let begin = self.begin as usize + 1;
        let end = begin + usize::from(self.length);
        &text[begin..end]
    }
}

fn compare(text: &[u8], one: &Key, other: &Key) -> Ordering {
    one.next
        .cmp(&other.next)
        .then_with(|| one.name(text).cmp(other.name(text)))
}

/// The position of the type in a mode.
const TYPE_SHIFT: u32 = 12;

fn byte_of(kind: FileType) -> u8 {
    u8::try_from(kind.as_raw_mode() >> TYPE_SHIFT).unwrap_or(u8::MAX)
}

fn type_of(byte: u8) -> FileType {
    FileType::from_raw_mode(u32::from(byte) << TYPE_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(listed: &[&CStr]) -> Vec<Vec<u8>> {
        let mut names = Names::default();
        for name in listed {
            names.add(name, FileType::Symlink).unwrap();
        }
        names.sort().unwrap();
        assert!(names.iter().all(|(_, kind)| kind == FileType::Symlink));
        names
            .iter()
            .map(|(name, _)| name.to_bytes().to_vec())
            .collect()
    }

    #[test]
    fn names_come_once_in_the_order_of_their_bytes() {
        let listed = [
            c"b",
            c"12345678b",
            c"12345678",
            c"12345678a",
            c"\xff",
            c"a",
            c"12345678b",
            c"b",
        ];
        let expected: [&[u8]; 6] = [b"12345678", b"12345678a", b"12345678b", b"a", b"b", b"\xff"];
        assert_eq!(sorted(&listed), expected);
    }

    #[test]
    fn what_all_names_begin_with_does_not_matter() {
        let listed = [
            c"prefix-2",
            c"prefix-",
            c"prefix-10000000b",
            c"prefix-10000000a",
        ];
        let expected: [&[u8]; 4] = [
            b"prefix-",
            b"prefix-10000000a",
            b"prefix-10000000b",
            b"prefix-2",
        ];
        assert_eq!(sorted(&listed), expected);
        assert_eq!(sorted(&[c"one", c"one"]), [b"one"]);
        assert!(sorted(&[]).is_empty());
    }

    #[test]
    fn a_type_comes_out_as_it_went_in() {
        for kind in [
            FileType::RegularFile,
            FileType::Directory,
            FileType::Symlink,
            FileType::Fifo,
            FileType::Socket,
            FileType::CharacterDevice,
            FileType::BlockDevice,
            FileType::Unknown,
        ] {
            assert_eq!(type_of(byte_of(kind)), kind);
        }
    }
}
