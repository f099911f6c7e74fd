//! The system calls that change files.  Nothing else in the workspace changes one.
//!
//! Rule to keep: one thread makes these calls, in the order of its plan.  Several threads may only
//! make new entries in a folder of the staging area (`stage`), and write everything to disk.

#![expect(clippy::disallowed_methods, reason = "the one door to what changes")]

use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid,
};
use rustix::io::Errno;

use super::call::{self, Outcome, Time, handle_path, retry};

/// The id that leaves a user or group unchanged.
pub const LEAVE: u32 = u32::MAX;

/// Make an empty file that only its owner may open; it must not exist.
pub fn make_file(directory: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    make_file_with(directory, name, 0o600)
}

/// Make an empty file with the permission bits of `mode`, less the umask; it must not exist.
pub fn make_file_with(directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> Outcome<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry(Errno::INTR, || {
        rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(mode))
    })
}

/// Reopen a private file that this process has open as `number`, for writing.
pub fn reopen(number: u32) -> Outcome<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    retry(Errno::INTR, || {
        rustix::fs::open(path.as_str(), flags, Mode::empty())
    })
}

/// Open a file in a private folder for reading and writing; the file may not be a symlink.
pub fn open_file(path: &[u8]) -> Outcome<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry(Errno::INTR, || rustix::fs::open(path, flags, Mode::empty()))
}

/// Write all of `bytes` at the current position of the file.
pub fn write(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Outcome<()> {
    while !bytes.is_empty() {
        let written = retry(Errno::INTR, || rustix::io::write(file, bytes))?;
        if written == 0 {
            return Err(Errno::IO);
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Write all of `bytes` at `offset`.
pub fn write_at(file: BorrowedFd<'_>, mut offset: u64, mut bytes: &[u8]) -> Outcome<()> {
    while !bytes.is_empty() {
        let written = retry(Errno::INTR, || rustix::io::pwrite(file, bytes, offset))?;
        if written == 0 {
            return Err(Errno::IO);
        }
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

/// Share all blocks of `source` with the empty file `target`; an error if the file system cannot.
pub fn clone(target: BorrowedFd<'_>, source: BorrowedFd<'_>) -> Outcome<()> {
    retry(Errno::INTR, || rustix::fs::ioctl_ficlone(target, source))
}

/// Copy the bytes of `source` in `range` to the same offset of `target`, in the kernel or else by
/// reading and writing.  An error if the source ends before.
pub fn copy_range(
    target: BorrowedFd<'_>,
    source: BorrowedFd<'_>,
    range: Range<u64>,
) -> Outcome<()> {
    let (mut from, mut to) = (range.start, range.start);
    while from < range.end {
        let left = usize::try_from(range.end - from).unwrap_or(usize::MAX);
        let copied = retry(Errno::INTR, || {
            rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), left)
        });
        match copied {
            Ok(bytes) if bytes > 0 => {}
            Err(errno) if !cannot_copy(errno) => return Err(errno),
            // The kernel may copy nothing although the source was not truncated.
            _ => return copy_by_hand(target, source, from..range.end),
        }
    }
    Ok(())
}

/// Return true if a read and a write may succeed after an error of `copy_file_range(2)`.
///
/// These are the errors after which `std::io::copy` falls back: of file systems, old kernels and
/// seccomp.
fn cannot_copy(errno: Errno) -> bool {
    let is_refused = matches!(errno, Errno::PERM | Errno::BADF | Errno::OVERFLOW);
    is_unsupported(errno) || errno == Errno::XDEV || is_refused
}

/// Copy a range by reading and writing it.
fn copy_by_hand(target: BorrowedFd<'_>, source: BorrowedFd<'_>, range: Range<u64>) -> Outcome<()> {
    let mut room = vec![0; 256 << 10];
    let mut offset = range.start;
    while offset < range.end {
        let left = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
        let size = left.min(room.len());
        let bytes = &mut room[..size];
        call::read_all_at(source, offset, bytes)?;
        write_at(target, offset, bytes)?;
        offset += size as u64;
    }
    Ok(())
}

/// Fill a range with zeros: by a hole, or by writing if the file system cannot.
pub fn clear_range(file: BorrowedFd<'_>, range: Range<u64>) -> Outcome<()> {
    let size = range.end - range.start;
    let flags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
    let punched = retry(Errno::INTR, || {
        rustix::fs::fallocate(file, flags, range.start, size)
    });
    match punched {
        Err(errno) if is_unsupported(errno) => write_zeros(file, range),
        outcome => outcome,
    }
}

/// Reserve the blocks of a range, without changing the file's size or content.
///
/// Does nothing if the file system cannot reserve blocks.
pub fn reserve_range(file: BorrowedFd<'_>, range: Range<u64>) -> Outcome<()> {
    let size = range.end - range.start;
    let reserved = retry(Errno::INTR, || {
        rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, range.start, size)
    });
    match reserved {
        Err(errno) if is_unsupported(errno) => Ok(()),
        outcome => outcome,
    }
}

/// Overwrite a range with zeros.
fn write_zeros(file: BorrowedFd<'_>, range: Range<u64>) -> Outcome<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut offset = range.start;
    while offset < range.end {
        let left = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
        let some = &ZEROS[..left.min(ZEROS.len())];
        write_at(file, offset, some)?;
        offset += some.len() as u64;
    }
    Ok(())
}

/// Make an empty directory that only its owner may enter.
pub fn make_directory(directory: BorrowedFd<'_>, name: &[u8]) -> Outcome<()> {
    rustix::fs::mkdirat(directory, name, Mode::RWXU)
}

/// Make a symlink.
pub fn make_symlink(directory: BorrowedFd<'_>, name: &[u8], target: &[u8]) -> Outcome<()> {
    rustix::fs::symlinkat(target, directory, name)
}

/// Make another name of the file `leader` of the directory `from`.
pub fn make_link(
    from: BorrowedFd<'_>,
    leader: &[u8],
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Outcome<()> {
    rustix::fs::linkat(from, leader, directory, name, AtFlags::empty())
}

/// Make another name of a file that was opened without permission to read it.
pub fn make_link_by_path(
    leader: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Outcome<()> {
    let flags = AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(CWD, handle_path(leader), directory, name, flags)
}

/// Set the size of a file.
pub fn set_size(file: BorrowedFd<'_>, size: u64) -> Outcome<()> {
    retry(Errno::INTR, || rustix::fs::ftruncate(file, size))
}

/// Set the permission bits.
pub fn set_mode(of: BorrowedFd<'_>, mode: u32) -> Outcome<()> {
    rustix::fs::fchmod(of, Mode::from_raw_mode(mode))
}

/// Set the mode of an inode that was opened without permission to read it, which fchmod(2) refuses.
pub fn set_mode_by_path(of: BorrowedFd<'_>, mode: u32) -> Outcome<()> {
    rustix::fs::chmod(handle_path(of), Mode::from_raw_mode(mode))
}

/// Set the mode of the entry `name`; follows a symlink, so only for private directories.
pub fn set_mode_at(directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> Outcome<()> {
    rustix::fs::chmodat(directory, name, Mode::from_raw_mode(mode), AtFlags::empty())
}

/// Set owner and group.
pub fn set_owner(of: BorrowedFd<'_>, user: u32, group: u32) -> Outcome<()> {
    rustix::fs::fchown(of, uid(user), gid(group))
}

/// Set the owner of an inode that was opened without permission to read it.
pub fn set_owner_by_path(of: BorrowedFd<'_>, user: u32, group: u32) -> Outcome<()> {
    rustix::fs::chown(handle_path(of), uid(user), gid(group))
}

/// Set the owner of the entry `name`, of a symlink itself.
pub fn set_owner_at(directory: BorrowedFd<'_>, name: &[u8], user: u32, group: u32) -> Outcome<()> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(directory, name, uid(user), gid(group), flags)
}

/// Set the mtime; the atime becomes the present time.
pub fn set_mtime(of: BorrowedFd<'_>, mtime: Time) -> Outcome<()> {
    rustix::fs::futimens(of, &timestamps(mtime))
}

/// Set the mtime of an inode that was opened without permission to read it; the atime becomes the present time.
pub fn set_mtime_by_path(of: BorrowedFd<'_>, mtime: Time) -> Outcome<()> {
    rustix::fs::utimensat(CWD, handle_path(of), &timestamps(mtime), AtFlags::empty())
}

/// Set the mtime of the entry `name`, of a symlink itself; the atime becomes the present time.
pub fn set_mtime_at(directory: BorrowedFd<'_>, name: &[u8], mtime: Time) -> Outcome<()> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::utimensat(directory, name, &timestamps(mtime), flags)
}

/// A directory and a name in it.
pub type NameIn<'a> = (BorrowedFd<'a>, &'a [u8]);

/// Rename an entry, replacing an entry of the new name as rename(2) does.
pub fn rename(from: NameIn<'_>, to: NameIn<'_>) -> Outcome<()> {
    rustix::fs::renameat(from.0, from.1, to.0, to.1)
}

/// Rename an entry; `EXIST` if the new name is taken.
///
/// If kernel or file system cannot refuse that, the name is checked first; a name that appears
/// after the check is replaced.
pub fn rename_to_nothing(from: NameIn<'_>, to: NameIn<'_>) -> Outcome<()> {
    match rename_noreplace(from, to) {
        Err(errno) if is_unsupported(errno) => {}
        outcome => return outcome,
    }
    match call::status_at(to.0, to.1) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rename(from, to),
        Err(errno) => Err(errno),
    }
}

/// Rename an entry; `EXIST` if the new name is taken, and an error (`is_unsupported`) where such a rename is not possible.
pub fn rename_noreplace(from: NameIn<'_>, to: NameIn<'_>) -> Outcome<()> {
    rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE)
}

/// Return true if an error means that the call or its flag is not supported.
pub fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::INVAL | Errno::NOTSUP)
}

/// Exchange two entries.
pub fn exchange(one: NameIn<'_>, other: NameIn<'_>) -> Outcome<()> {
    rustix::fs::renameat_with(one.0, one.1, other.0, other.1, RenameFlags::EXCHANGE)
}

/// Remove an entry that is not a directory.
pub fn unlink(directory: BorrowedFd<'_>, name: &[u8]) -> Outcome<()> {
    rustix::fs::unlinkat(directory, name, AtFlags::empty())
}

/// Remove an empty directory.
pub fn remove_directory(directory: BorrowedFd<'_>, name: &[u8]) -> Outcome<()> {
    rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
}

/// Write a file or directory, with its attributes, to disk.
pub fn sync(of: BorrowedFd<'_>) -> Outcome<()> {
    retry(Errno::INTR, || rustix::fs::fsync(of))
}

/// Write all changes of the file system of an open file to disk.
pub fn sync_file_system(of: BorrowedFd<'_>) -> Outcome<()> {
    retry(Errno::INTR, || rustix::fs::syncfs(of))
}

fn uid(number: u32) -> Option<Uid> {
    (number != LEAVE).then(|| Uid::from_raw(number))
}

fn gid(number: u32) -> Option<Gid> {
    (number != LEAVE).then(|| Gid::from_raw(number))
}

/// Return `mtime` with the present time as atime, as rsync sets both: file systems of libfuse 2 set none if one is omitted.
fn timestamps(mtime: Time) -> Timestamps {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default(); // a clock before 1970
    Timestamps {
        last_access: Timespec {
            tv_sec: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: now.subsec_nanos().into(),
        },
        last_modification: Timespec {
            tv_sec: mtime.seconds,
            tv_nsec: mtime.nanoseconds.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::temporary::Folder;

    #[test]
    fn both_times_are_set() {
        let folder = Folder::new();
        folder.write("file", b"");
        folder.age("file");
        let before = SystemTime::now();
        let mtime = Time {
            seconds: 1_600_000_000,
            nanoseconds: 123_456_789,
        };
        let handle = call::open_root(folder.path()).unwrap();
        set_mtime_at(handle.as_fd(), b"file", mtime).unwrap();
        let status = call::status_at(handle.as_fd(), &b"file"[..]).unwrap();
        assert_eq!(status.mtime, mtime);
        let second = std::time::Duration::from_secs(1);
        assert!(folder.accessed("file") >= before - second);
    }

    #[test]
    fn zeros_are_written_where_no_hole_can_be_made() {
        const RANGE: Range<usize> = 100..(150 << 10);
        let folder = Folder::new();
        let mut content = vec![1; 200 << 10];
        folder.write("target", &content);
        let target = open_file(&[folder.path(), b"/target"].concat()).unwrap();
        write_zeros(target.as_fd(), RANGE.start as u64..RANGE.end as u64).unwrap();
        content[RANGE].fill(0);
        assert!(folder.read("target") == content);
    }

    #[test]
    fn a_range_is_copied_where_the_kernel_copies_nothing() {
        // Files of procfs have size 0, for which copy_file_range(2) copies nothing.
        let folder = Folder::new();
        folder.write("target", b"");
        let proc = call::open_root(b"/proc/self").unwrap();
        let source = call::open_file_at(proc.as_fd(), b"maps").unwrap();
        let target = open_file(&[folder.path(), b"/target"].concat()).unwrap();
        copy_range(target.as_fd(), source.as_fd(), 0..16).unwrap();
        assert_eq!(folder.read("target").len(), 16);
    }

    #[test]
    fn a_source_that_was_cut_is_an_error() {
        let folder = Folder::new();
        folder.write("source", b"1234");
        folder.write("target", b"");
        let handle = call::open_root(folder.path()).unwrap();
        let source = call::open_file_at(handle.as_fd(), b"source").unwrap();
        let target = open_file(&[folder.path(), b"/target"].concat()).unwrap();
        assert!(copy_range(target.as_fd(), source.as_fd(), 0..5).is_err());
    }

    #[test]
    fn the_errors_of_a_call_that_is_lacking_are_those_of_std() {
        use Errno as E;
        for errno in [
            E::NOSYS,
            E::XDEV,
            E::INVAL,
            E::PERM,
            E::OPNOTSUPP,
            E::BADF,
            E::OVERFLOW,
        ] {
            assert!(cannot_copy(errno), "{errno:?}");
        }
        for errno in [E::IO, E::NOSPC, E::DQUOT, E::NOMEM, E::FBIG] {
            assert!(!cannot_copy(errno), "{errno:?}");
        }
    }
}
