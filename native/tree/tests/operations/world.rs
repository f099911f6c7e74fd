//! A folder with a tree, a staging area and an outside folder, all of one user.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::panic,
    reason = "tests make what the crate works on"
)]

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, FileType, Mode, Uid, mknodat};
use rustix::thread::set_thread_res_uid;

use crate::temporary::Folder;

const NOBODY: u32 = 65_534;

/// The user who works in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Ordinary,
}

/// The users that this process may be.
pub(crate) fn users() -> &'static [User] {
    if own_number() == 0 {
        &[User::Root, User::Ordinary]
    } else {
        &[User::Ordinary]
    }
}

fn own_number() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}

impl User {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::Ordinary if own_number() == 0 => NOBODY,
            Self::Ordinary => own_number(),
        }
    }

    /// Call `work` in a thread of this user.
    pub(crate) fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        let number = Uid::from_raw(self.number());
        let is_other = self.number() != own_number();
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                if is_other {
                    set_thread_res_uid(number, number, number).unwrap();
                }
                work()
            });
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// A folder with `tree`, `area` and `outside`.
pub(crate) struct World {
    folder: Folder,
    user: User,
}

impl World {
    /// Make entries from lines: `d MODE PATH`, `f MODE PATH CONTENT`, `l PATH TARGET` or `p PATH`.
    pub(crate) fn new<'a>(user: User, entries: impl IntoIterator<Item = &'a str>) -> Self {
        let folder = Folder::new();
        let world = Self { folder, user };
        let mut modes = Vec::new();
        for line in ["d 755 tree", "d 755 area", "d 755 outside"]
            .into_iter()
            .chain(entries)
        {
            let words: Vec<_> = line.split(' ').collect();
            match words[..] {
                ["d", mode, path] => {
                    fs::create_dir(world.at(path)).unwrap();
                    modes.push((path, mode));
                }
                ["f", mode, path, content] => {
                    fs::write(world.at(path), content).unwrap();
                    world.age(path, 0);
                    modes.push((path, mode));
                }
                ["l", path, target] => symlink(target, world.at(path)).unwrap(),
                ["p", path] => {
                    let mode = Mode::from_raw_mode(0o600);
                    mknodat(CWD, world.at(path), FileType::Fifo, mode, 0).unwrap();
                }
                _ => panic!("{line}"),
            }
        }
        for path in world.paths() {
            lchown(&path, Some(user.number()), None).unwrap();
        }
        for (path, mode) in modes.into_iter().rev() {
            let mode = u32::from_str_radix(mode, 8).unwrap();
            fs::set_permissions(world.at(path), Permissions::from_mode(mode)).unwrap();
        }
        world
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        Path::new(OsStr::from_bytes(self.folder.path())).join(path)
    }

    /// Open the directory at `path`; the number is valid as long as the file.
    pub(crate) fn open(&self, path: &str) -> (File, u32) {
        let file = File::open(self.at(path)).unwrap();
        let number = u32::try_from(file.as_raw_fd()).unwrap();
        (file, number)
    }

    /// Set the time of the last change, in nanoseconds since the epoch.
    pub(crate) fn age(&self, path: &str, mtime: u64) {
        let file = File::open(self.at(path)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_nanos(mtime))
            .unwrap();
    }

    /// Return the time of an entry, of a symlink itself, in seconds since the epoch.
    pub(crate) fn mtime(&self, path: &str) -> i64 {
        fs::symlink_metadata(self.at(path)).unwrap().mtime()
    }

    pub(crate) fn inode(&self, path: &str) -> u64 {
        fs::symlink_metadata(self.at(path)).unwrap().ino()
    }

    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.user.run(work)
    }

    /// Return all entries as lines for `new`; a file with several names has their number too.
    pub(crate) fn entries(&self) -> Vec<String> {
        let describe = |path: &PathBuf| {
            let name = path
                .strip_prefix(self.at(""))
                .unwrap()
                .display()
                .to_string();
            let status = fs::symlink_metadata(path).unwrap();
            let (kind, mode) = (status.file_type(), status.mode() & 0o7777);
            if kind.is_dir() {
                format!("d {mode:o} {name}")
            } else if kind.is_symlink() {
                format!("l {name} {}", fs::read_link(path).unwrap().display())
            } else if kind.is_fifo() {
                format!("p {name}")
            } else {
                let content = fs::read_to_string(path).unwrap_or_else(|_| "?".into());
                let names = status.nlink();
                let names = if names > 1 {
                    format!(" x{names}")
                } else {
                    String::new()
                };
                format!("f {mode:o} {name} {content}{names}")
            }
        };
        self.paths().iter().map(describe).collect()
    }

    /// Return the entries at `path` and below, without the path.
    pub(crate) fn shown_at(&self, path: &str) -> String {
        let is_below = |line: &&String| {
            let mut words = line.split(' ').filter_map(|word| word.strip_prefix(path));
            words.any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let lines = self.entries();
        let lines: Vec<_> = lines.iter().filter(is_below).collect();
        let lines = lines
            .into_iter()
            .map(|line| line.replacen(path, "", 1).replace("  ", " "));
        let lines: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
        if lines.is_empty() {
            "nothing".into()
        } else {
            lines.join(", ")
        }
    }

    /// Return the paths of all entries, sorted.
    fn paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![];
        let mut pending = vec![self.at("")];
        while let Some(folder) = pending.pop() {
            let entries = fs::read_dir(folder).unwrap();
            for entry in entries.map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    pending.push(entry.path());
                }
                paths.push(DirEntry::path(&entry));
            }
        }
        paths.sort();
        paths
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for path in self.paths() {
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            }
        }
    }
}
