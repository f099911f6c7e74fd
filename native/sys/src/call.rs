//! The system calls that read, with their retries.
//!
//! A signal may arrive on any thread, and rustix does not retry by itself.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

pub use rustix::fs::FileType;
pub use rustix::fs::inotify::ReadFlags;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{
    AtFlags, Mode, OFlags, ResolveFlags, SeekFrom, Statx, StatxFlags, StatxTimestamp,
};
use rustix::io::Errno;
use rustix::path::Arg;

/// The attempts of a call that a concurrent rename or a signal may interrupt.
const ATTEMPTS: usize = 16;

/// The most events of one reading.
const FLOOD: usize = 1 << 16;

/// The flags to open a directory for reading.
pub const FOR_READING: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The flags to open a directory for lookups.
pub const FOR_LOOKUPS: OFlags = OFlags::PATH
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

/// The events of a directory, its entries and the files in it; also during writes, so
/// that files are not taken for complete.
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
/// The longest value in bytes of an extended attribute (`XATTR_SIZE_MAX`).
const ACL_MOST: usize = 64 << 10;

/// The result of a call.
pub type Outcome<T> = Result<T, Errno>;

/// Return a name that NUL ends, for the kernel; `INVAL` if it contains one.
pub fn terminated(name: &[u8]) -> Outcome<CString> {
    CString::new(name).map_err(|_| Errno::INVAL)
}

/// A time as the kernel reports it: seconds, rounded down, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// Seconds since the epoch.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
}

/// The status of an entry (statx(2)).
#[derive(Debug, Clone, Copy)]
pub struct Status {
    /// The type.
    pub kind: FileType,
    /// The permission bits with setuid, setgid and sticky.
    pub mode: u32,
    /// The kernel's number of the file system.
    pub device: u64,
    /// The mount id; 0 if unknown, before Linux 5.8.
    pub mount: u64,
    /// The inode number.
    pub inode: u64,
    /// The number of names.
    pub links: u32,
    /// The owner.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// The size in bytes.
    pub size: u64,
    /// The number of allocated units of 512 bytes.
    pub blocks: u64,
    /// The time of the last change of the content.
    pub mtime: Time,
    /// The time of the last change of the inode.
    pub ctime: Time,
}

/// Repeat a call, up to 16 times, that a signal interrupts or that fails with `also`.
pub fn retry<T>(also: Errno, mut call: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    for _ in 1..ATTEMPTS {
        match call() {
            Err(errno) if errno == Errno::INTR || errno == also => {}
            other => return other,
        }
    }
    call()
}

/// Open a directory that a person named, which may be a symlink.
pub fn open_root(path: &[u8]) -> Outcome<OwnedFd> {
    let flags = FOR_READING.difference(OFlags::NOFOLLOW);
    retry(Errno::INTR, || rustix::fs::open(path, flags, Mode::empty()))
}

/// Open a directory that the caller made or owns, which may not be a symlink.
pub fn open_folder(path: &[u8]) -> Outcome<OwnedFd> {
    retry(Errno::INTR, || {
        rustix::fs::open(path, FOR_READING, Mode::empty())
    })
}

/// The flags of a lookup below a root in one call.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Open the directory `path` below `root` in one call; `LOOP` for a symlink on the way, `XDEV` for
/// a path that leads out.
pub fn open_beneath(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Outcome<OwnedFd> {
    retry(Errno::AGAIN, || {
        rustix::fs::openat2(root, path, flags, Mode::empty(), BENEATH)
    })
}

/// Open the directory `path` below `root` for lookups, without following symlinks or crossing
/// mounts.
pub fn open_within(root: BorrowedFd<'_>, path: &[u8]) -> Outcome<OwnedFd> {
    let how = BENEATH.union(ResolveFlags::NO_XDEV);
    retry(Errno::AGAIN, || {
        rustix::fs::openat2(root, path, FOR_LOOKUPS, Mode::empty(), how)
    })
}

/// Open the directory `name` of `from`, not a symlink, for reading.
pub fn open_for_reading(from: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    retry(Errno::INTR, || {
        rustix::fs::openat(from, name, FOR_READING, Mode::empty())
    })
}

/// Open the directory `name` of `from`, not a symlink, for lookups.
pub fn open_for_lookups(from: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    retry(Errno::INTR, || {
        rustix::fs::openat(from, name, FOR_LOOKUPS, Mode::empty())
    })
}

/// Open a file in a private folder for reading; the file may not be a symlink.
pub fn open_file(path: &[u8]) -> Outcome<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry(Errno::INTR, || rustix::fs::open(path, flags, Mode::empty()))
}

/// Reopen the file that this process has open as `number`, for reading.
pub fn reopen(number: u32) -> Outcome<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    retry(Errno::INTR, || {
        rustix::fs::open(path.as_str(), flags, Mode::empty())
    })
}

/// Open the file `name` of `from`, not a symlink, for reading; never blocks on other types, which are opened too.
pub fn open_file_at(from: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    let quiet = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | quiet;
    retry(Errno::INTR, || {
        rustix::fs::openat(from, name, flags, Mode::empty())
    })
}

/// Open an entry of any type, without permission to read it and without an effect on it.
pub fn open_inode(directory: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry(Errno::INTR, || {
        rustix::fs::openat(directory, name, flags, Mode::empty())
    })
}

/// Read the bytes at `offset` once; returns their number.
pub fn read_at(file: BorrowedFd<'_>, offset: u64, room: &mut [u8]) -> Outcome<usize> {
    retry(Errno::INTR, || rustix::io::pread(file, &mut *room, offset))
}

/// Fill all of `room` with the bytes at `offset`; a file that ends before is an error.
pub fn read_all_at(file: BorrowedFd<'_>, mut offset: u64, mut room: &mut [u8]) -> Outcome<()> {
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

/// Return the next range of data in a range of a file; `None` if only holes follow.  Without
/// support of the file system, everything is data.  Moves the file's position.
pub fn next_data(file: BorrowedFd<'_>, range: Range<u64>) -> Outcome<Option<Range<u64>>> {
    let begin = match rustix::fs::seek(file, SeekFrom::Data(range.start)) {
        Ok(begin) if begin < range.end => begin,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => return Ok(Some(range)),
        Err(errno) => return Err(errno),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(begin))?;
    Ok(Some(begin..end.min(range.end)))
}

/// Return the status of an open file or directory.
pub fn status(of: BorrowedFd<'_>) -> Outcome<Status> {
    statx(of, c"", AtFlags::EMPTY_PATH)
}

/// Return the status of an open file or directory, and its time of birth if the file system reports
/// it.
pub fn status_with_birth(of: BorrowedFd<'_>) -> Outcome<(Status, Option<Time>)> {
    statx_with_birth(of, c"", AtFlags::EMPTY_PATH)
}

/// The flags to examine an entry: it is not opened, and a symlink not followed.
const TO_LOOK: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::NO_AUTOMOUNT);

/// Return the status of the entry `name` of a directory, of a symlink itself.
pub fn status_at(directory: BorrowedFd<'_>, name: impl Arg + Copy) -> Outcome<Status> {
    statx(directory, name, TO_LOOK)
}

/// Return the status of the entry `name` of a directory, and its time of birth if the file system reports it.
pub fn status_with_birth_at(
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Outcome<(Status, Option<Time>)> {
    statx_with_birth(directory, name, TO_LOOK)
}

/// Return type and id of the file system of an open file or directory; an id of 0 is unknown.
pub fn file_system(of: BorrowedFd<'_>) -> Outcome<(u64, u64)> {
    let kind = retry(Errno::INTR, || rustix::fs::fstatfs(of))?.f_type;
    let id = retry(Errno::INTR, || rustix::fs::fstatvfs(of))?.f_fsid;
    Ok((u64::try_from(kind).unwrap_or_default(), id))
}

fn statx(from: BorrowedFd<'_>, name: impl Arg + Copy, flags: AtFlags) -> Outcome<Status> {
    retry(Errno::INTR, || rustix::fs::statx(from, name, flags, FIELDS))
        .map(|found| as_status(&found))
}

/// Return the status, and the time of birth if the file system reports it.
fn statx_with_birth(
    from: BorrowedFd<'_>,
    name: impl Arg + Copy,
    flags: AtFlags,
) -> Outcome<(Status, Option<Time>)> {
    let fields = FIELDS.union(StatxFlags::BTIME);
    let fields_read = retry(Errno::INTR, || rustix::fs::statx(from, name, flags, fields))?;
    let is_told = fields_read.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok((
        as_status(&fields_read),
        is_told.then(|| time(fields_read.stx_btime)),
    ))
}

fn as_status(found: &Statx) -> Status {
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

/// Return the default ACL of an open directory, as the kernel encodes it; empty if it is missing.
pub fn default_acl(of: BorrowedFd<'_>) -> Outcome<Vec<u8>> {
    let path = handle_path(of);
    let mut room = vec![0; ACL_MOST];
    let read = retry(Errno::INTR, || {
        rustix::fs::getxattr(path.as_str(), DEFAULT_ACL, &mut room[..])
    });
    match read {
        Ok(size) => room.truncate(size),
        Err(Errno::NODATA | Errno::NOTSUP) => room.clear(),
        Err(errno) => return Err(errno),
    }
    Ok(room)
}

/// Return a path of the opened inode (proc(5)).
pub fn handle_path(of: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", of.as_raw_fd())
}

/// Return the target of the symlink `name` of a directory, truncated to `room`.
pub fn read_link<'a>(
    directory: BorrowedFd<'_>,
    name: impl Arg,
    room: &'a mut [MaybeUninit<u8>],
) -> Outcome<&'a [u8]> {
    rustix::fs::readlinkat_raw(directory, name, room).map(|(target, _)| &*target)
}

/// Rewind an open directory.
pub fn rewind(directory: BorrowedFd<'_>) -> Outcome<()> {
    rustix::fs::seek(directory, SeekFrom::Start(0)).map(|_| ())
}

/// Make a queue of events of watched directories; reading it never blocks.
pub fn make_watch_queue() -> Outcome<OwnedFd> {
    inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
}

/// Watch an open directory; returns its number in the queue.
pub fn watch(queue: BorrowedFd<'_>, directory: BorrowedFd<'_>) -> Outcome<i32> {
    let path = handle_path(directory);
    retry(Errno::INTR, || {
        inotify::add_watch(queue, path.as_str(), WATCHED)
    })
}

/// End the watch with this number; does nothing if it has ended.
pub fn unwatch(queue: BorrowedFd<'_>, number: i32) {
    // It may have ended by itself.
    let _ = inotify::remove_watch(queue, number);
}

/// Call `each` with the number, the kind and the name of each present event; stops after [`FLOOD`]
/// of them.
pub fn read_events(
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

/// Call `each` with name and type of all entries except "." and ".." from the current position on,
/// in any order; its first error ends the reading.
pub fn read_names(
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
