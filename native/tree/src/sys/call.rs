//! Each system call that reads, once, with its retries.
//!
//! A signal may land on any thread, and rustix does not try again by itself.

#![expect(clippy::disallowed_methods, reason = "the one door to what reads")]

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, SeekFrom, Statx, StatxFlags, StatxTimestamp,
};
use rustix::io::Errno;
use rustix::path::Arg;

/// How often is tried again what a concurrent rename or a signal may interrupt.
const ATTEMPTS: usize = 16;

/// Events that are taken at once.
const FLOOD: usize = 1 << 16;

/// How a directory is opened to be read.
pub(crate) const TO_READ: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How a directory is opened to go further down.
pub(crate) const TO_PASS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

const FIELDS: StatxFlags = StatxFlags::TYPE
    .union(StatxFlags::MODE)
    .union(StatxFlags::NLINK)
    .union(StatxFlags::UID)
    .union(StatxFlags::GID)
    .union(StatxFlags::MTIME)
    .union(StatxFlags::CTIME)
    .union(StatxFlags::INO)
    .union(StatxFlags::SIZE)
    .union(StatxFlags::BLOCKS)
    .union(StatxFlags::MNT_ID);

/// What changes a directory, what it holds, and the files in it; also while they are written, so
/// that they are not taken for complete.
const WATCHED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR);

const DEFAULT_ACL: &str = "system.posix_acl_default";
/// Bytes of the longest value of an extended attribute (`XATTR_SIZE_MAX`).
const ACL_MOST: usize = 64 << 10;

/// What one call gives.
pub(crate) type Outcome<T> = Result<T, Errno>;

/// A name as the kernel takes it.
pub(crate) fn terminated(name: &[u8]) -> Outcome<CString> {
    CString::new(name).map_err(|_| Errno::INVAL)
}

/// A time as the kernel gives it: seconds, floored, and nanoseconds from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// What statx says of one entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) kind: FileType,
    pub(crate) mode: u32,
    pub(crate) device: u64,
    /// The mount; 0: not known, before Linux 5.8.
    pub(crate) mount: u64,
    pub(crate) inode: u64,
    pub(crate) links: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) size: u64,
    /// Units of 512 bytes that are allocated.
    pub(crate) blocks: u64,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
}

pub(crate) fn again<T>(also: Errno, mut call: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    for _ in 1..ATTEMPTS {
        match call() {
            Err(errno) if errno == Errno::INTR || errno == also => {}
            other => return other,
        }
    }
    call()
}

/// Opens the directory that a person named; this one may be a symlink.
pub(crate) fn open_root(path: &[u8]) -> Outcome<OwnedFd> {
    let flags = TO_READ.difference(OFlags::NOFOLLOW);
    again(Errno::INTR, || rustix::fs::open(path, flags, Mode::empty()))
}

/// Opens the directory that the caller made or owns; this one may not be a symlink.
pub(crate) fn open_folder(path: &[u8]) -> Outcome<OwnedFd> {
    again(Errno::INTR, || {
        rustix::fs::open(path, TO_READ, Mode::empty())
    })
}

/// How a path below a root is looked up in one call.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Opens the directory `path` below `root` in one call, with no symlink on the way.
pub(crate) fn open_beneath(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Outcome<OwnedFd> {
    again(Errno::AGAIN, || {
        rustix::fs::openat2(root, path, flags, Mode::empty(), BENEATH)
    })
}

/// The same to go further down, and with no mount on the way.
pub(crate) fn pass_within(root: BorrowedFd<'_>, path: &[u8]) -> Outcome<OwnedFd> {
    let how = BENEATH.union(ResolveFlags::NO_XDEV);
    again(Errno::AGAIN, || {
        rustix::fs::openat2(root, path, TO_PASS, Mode::empty(), how)
    })
}

/// Opens the directory `name` right here, to be read.
pub(crate) fn open_here(from: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    again(Errno::INTR, || {
        rustix::fs::openat(from, name, TO_READ, Mode::empty())
    })
}

/// Opens the directory `name` right here, to go further down.
pub(crate) fn step(from: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    again(Errno::INTR, || {
        rustix::fs::openat(from, name, TO_PASS, Mode::empty())
    })
}

/// Opens a file of our own, to be read.
pub(crate) fn open_file(path: &[u8]) -> Outcome<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    again(Errno::INTR, || rustix::fs::open(path, flags, Mode::empty()))
}

/// Opens what this process has open as `number` once more, to be read.
pub(crate) fn reopen(number: u32) -> Outcome<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    again(Errno::INTR, || {
        rustix::fs::open(path.as_str(), flags, Mode::empty())
    })
}

/// Opens the file `name` right here, to be read; what is no regular file keeps nobody waiting.
pub(crate) fn open_file_at(from: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    let quiet = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | quiet;
    again(Errno::INTR, || {
        rustix::fs::openat(from, name, flags, Mode::empty())
    })
}

/// Opens whatever `name` is, without a right to read it and without an effect on it.
pub(crate) fn open_inode(directory: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    again(Errno::INTR, || {
        rustix::fs::openat(directory, name, flags, Mode::empty())
    })
}

/// Reads what stands at `offset`, as much as there is at once; how much that was.
pub(crate) fn read_at(file: BorrowedFd<'_>, offset: u64, room: &mut [u8]) -> Outcome<usize> {
    again(Errno::INTR, || rustix::io::pread(file, &mut *room, offset))
}

/// Fills all of `room` with what stands at `offset`; a file that ends before is an error.
pub(crate) fn read_all_at(
    file: BorrowedFd<'_>,
    mut offset: u64,
    mut room: &mut [u8],
) -> Outcome<()> {
    while !room.is_empty() {
        let read = read_at(file, offset, room)?;
        if read == 0 {
            return Err(Errno::IO); // it was cut meanwhile
        }
        offset += read as u64;
        room = &mut room[read..];
    }
    Ok(())
}

/// Where from `range.start` on there is data in a file; None: from there on there are holes.  Where
/// the file system knows no holes, all is data.
pub(crate) fn next_data(file: BorrowedFd<'_>, range: Range<u64>) -> Outcome<Option<Range<u64>>> {
    let begin = match rustix::fs::seek(file, SeekFrom::Data(range.start)) {
        Ok(begin) if begin < range.end => begin,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => return Ok(Some(range)),
        Err(errno) => return Err(errno),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(begin))?;
    Ok(Some(begin..end.min(range.end)))
}

/// What an open file or directory is.
pub(crate) fn status(of: BorrowedFd<'_>) -> Outcome<Status> {
    statx(of, c"", AtFlags::EMPTY_PATH)
}

/// Return what an open file or directory is, and when it was made if the file system says so.
pub(crate) fn status_with_birth(of: BorrowedFd<'_>) -> Outcome<(Status, Option<Time>)> {
    statx_with_birth(of, c"", AtFlags::EMPTY_PATH)
}

/// Flags of a look at the entry of a directory: it opens nothing, and a symlink stands for itself.
const TO_LOOK: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::NO_AUTOMOUNT);

/// Return what the entry `name` of a directory is.
pub(crate) fn status_at(directory: BorrowedFd<'_>, name: impl Arg + Copy) -> Outcome<Status> {
    statx(directory, name, TO_LOOK)
}

/// Return what the entry `name` of a directory is, and when it was made if the file system says so.
pub(crate) fn status_with_birth_at(
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Outcome<(Status, Option<Time>)> {
    statx_with_birth(directory, name, TO_LOOK)
}

/// Type and id of the file system of an open file or directory; an id of 0 says nothing.
pub(crate) fn file_system(of: BorrowedFd<'_>) -> Outcome<(u64, u64)> {
    let kind = again(Errno::INTR, || rustix::fs::fstatfs(of))?.f_type;
    let id = again(Errno::INTR, || rustix::fs::fstatvfs(of))?.f_fsid;
    Ok((u64::try_from(kind).unwrap_or_default(), id))
}

fn statx(from: BorrowedFd<'_>, name: impl Arg + Copy, flags: AtFlags) -> Outcome<Status> {
    again(Errno::INTR, || rustix::fs::statx(from, name, flags, FIELDS)).map(|found| told(&found))
}

fn statx_with_birth(
    from: BorrowedFd<'_>,
    name: impl Arg + Copy,
    flags: AtFlags,
) -> Outcome<(Status, Option<Time>)> {
    let fields = FIELDS.union(StatxFlags::BTIME);
    let found = again(Errno::INTR, || rustix::fs::statx(from, name, flags, fields))?;
    let is_told = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok((told(&found), is_told.then(|| time(found.stx_btime))))
}

fn told(found: &Statx) -> Status {
    let mode = u32::from(found.stx_mode);
    Status {
        kind: FileType::from_raw_mode(mode),
        mode: mode & 0o7777,
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        mount: found.stx_mnt_id,
        inode: found.stx_ino,
        links: found.stx_nlink,
        user: found.stx_uid,
        group: found.stx_gid,
        size: found.stx_size,
        blocks: found.stx_blocks,
        mtime: time(found.stx_mtime),
        ctime: time(found.stx_ctime),
    }
}

fn time(found: StatxTimestamp) -> Time {
    Time {
        seconds: found.tv_sec,
        nanoseconds: found.tv_nsec,
    }
}

/// The ACL that an opened directory hands down to what is made in it; empty: none.
pub(crate) fn default_acl(of: BorrowedFd<'_>) -> Outcome<Vec<u8>> {
    let path = handle_path(of);
    let mut room = vec![0; ACL_MOST];
    let read = again(Errno::INTR, || {
        rustix::fs::getxattr(path.as_str(), DEFAULT_ACL, &mut room[..])
    });
    match read {
        Ok(size) => room.truncate(size),
        Err(Errno::NODATA | Errno::NOTSUP) => room.clear(),
        Err(errno) => return Err(errno),
    }
    Ok(room)
}

/// A path of the opened inode (proc(5)).
pub(crate) fn handle_path(of: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", of.as_raw_fd())
}

/// Where the symlink `name` of a directory leads, as far as `room` goes.
pub(crate) fn read_link<'a>(
    directory: BorrowedFd<'_>,
    name: impl Arg,
    room: &'a mut [MaybeUninit<u8>],
) -> Outcome<&'a [u8]> {
    rustix::fs::readlinkat_raw(directory, name, room).map(|(target, _)| &*target)
}

/// Begins to read a directory again.
pub(crate) fn rewind(directory: BorrowedFd<'_>) -> Outcome<()> {
    rustix::fs::seek(directory, SeekFrom::Start(0)).map(|_| ())
}

/// A queue of what happens in directories that are watched; reading it never blocks.
pub(crate) fn watching() -> Outcome<OwnedFd> {
    inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
}

/// Watches an open directory; returns the number by which the queue calls it.
pub(crate) fn watch(queue: BorrowedFd<'_>, directory: BorrowedFd<'_>) -> Outcome<i32> {
    let path = handle_path(directory);
    again(Errno::INTR, || {
        inotify::add_watch(queue, path.as_str(), WATCHED)
    })
}

/// Ends the watch of that number.
pub(crate) fn unwatch(queue: BorrowedFd<'_>, number: i32) {
    // It may have ended by itself.
    let _ = inotify::remove_watch(queue, number);
}

/// Calls `each` with the number, the kind and the name of each event that is there; a flood that
/// does not end is left after [`FLOOD`] of them.
pub(crate) fn read_events(
    queue: BorrowedFd<'_>,
    room: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(i32, ReadFlags, &[u8]),
) -> Outcome<()> {
    let mut events = inotify::Reader::new(queue, room);
    let mut count = 0;
    while count < FLOOD || !events.is_buffer_empty() {
        match events.next() {
            Ok(event) => {
                count += 1;
                let name = event.file_name().map_or(b"".as_slice(), CStr::to_bytes);
                each(event.wd(), event.events(), name);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Calls `each` with name and type of all entries but "." and "..".
pub(crate) fn read_names(
    directory: BorrowedFd<'_>,
    room: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(&CStr, FileType) -> Outcome<()>,
) -> Outcome<()> {
    let mut entries = rustix::fs::RawDir::new(directory, room);
    let mut interrupted = 0;
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Ok(entry) => each(entry.file_name(), entry.file_type())?,
            Err(Errno::INTR) if interrupted < ATTEMPTS => interrupted += 1,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
