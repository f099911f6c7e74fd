//! Watches all directories of a tree for changes, by inotify(7).
//!
//! A directory is watched before its subdirectories are listed: later changes are events.
//! The paths of events are pending until the caller takes them.  A new directory is pending with
//! everything below: changes in it before it was watched caused no event.
//! Rules to keep: a watch that lost events, or whose root is gone, is of no further use, and the
//! caller begins another one; paths are only looked up below the root, through no symlink.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use huai_export::change_list::Touched;
use huai_format::path::{is_reserved, join};
use huai_plan::pattern::Pattern;
use huai_sys::call::{self, FileType, Outcome, ReadFlags};
use huai_sys::error::{Errno, Error, Result};
use huai_sys::handle::Root;
use huai_sys::listing::Names;
use huai_sys::stop::Stop;

use super::pending::Pending;
use super::watched::Watched;

/// The bytes of a read from the queue.
const ROOM: usize = 64 << 10;

/// The options of a watch.
#[derive(Debug)]
pub struct WatchOptions {
    /// The patterns of entries that are left out.
    pub patterns: Vec<Pattern>,
    /// True to watch nothing below a mount point.
    pub one_file_system: bool,
    /// True to watch nothing: the caller notes the changes.
    pub is_noted: bool,
    /// The most paths; more are taken as the whole tree.
    pub most: usize,
}

/// The events since the last call.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct WatchEvents {
    /// The number of events, except of entries that are left out.
    pub events: u64,
    /// True if the queue overflowed: other events are unknown.
    pub lost: bool,
    /// True if the root was renamed or unmounted.  Its deletion causes no event: it is held open.
    pub gone: bool,
}

/// A watch of a tree.
#[derive(Debug)]
pub struct TreeWatch {
    root: Root,
    options: WatchOptions,
    queue: OwnedFd,
    watched: Watched,
    names: Names,
    pending: Pending,
    /// The events that were read and not followed yet.
    events: VecDeque<(i32, ReadFlags, Vec<u8>)>,
    /// The directories to watch, with everything below them.
    unlooked: Vec<Vec<u8>>,
    /// The events of a call that was stopped.
    seen: WatchEvents,
    /// The number of directories that could not be watched, not counting those below, and the first
    /// error.
    unwatched: usize,
    first: Option<Error>,
}

impl TreeWatch {
    /// Watch the directory `root`, which may be a symlink, and everything below it.  Other
    /// directories that cannot be watched are counted; after a stop, `read` watches the rest.
    pub fn open(root: &[u8], options: WatchOptions, stop: &Stop) -> Result<Self> {
        let queue = call::make_watch_queue().map_err(|errno| Error::new("watch", root, errno))?;
        let mut watch = Self {
            root: Root::open(root)?,
            pending: Pending::new(options.most),
            options,
            queue,
            watched: Watched::default(),
            names: Names::default(),
            events: VecDeque::new(),
            unlooked: Vec::new(),
            seen: WatchEvents::default(),
            unwatched: 0,
            first: None,
        };
        if !watch.options.is_noted {
            watch.unlooked.push(Vec::new());
            watch.add_all(stop);
        }
        Ok(watch)
    }

    /// Return a handle that is readable when there are events.
    pub fn queue(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    /// Return the number of watched directories.
    pub fn directories(&self) -> usize {
        self.watched.len()
    }

    /// Return the number of directories that could not be watched.
    pub fn unwatched(&self) -> usize {
        self.unwatched
    }

    /// Return the error of the first directory that could not be watched; `None` if all are.
    pub fn first_unwatched(&self) -> Option<&Error> {
        self.first.as_ref()
    }

    /// Return the changed paths since the last call, and forget them; `None` if the whole tree has
    /// to be scanned: at first, after too many paths or a stop, and as long as a directory is
    /// unwatched.
    pub fn take_paths(&mut self) -> Option<Vec<Touched>> {
        let paths = self.pending.take_paths();
        let is_whole = self.events.is_empty() && self.unlooked.is_empty();
        paths.filter(|_| is_whole && self.unwatched == 0)
    }

    /// Add paths that have to be returned again; `None` is the whole tree.
    pub fn give_back(&mut self, taken: Option<&[Touched]>) {
        let Some(taken) = taken else {
            return self.pending.add_all();
        };
        for each in taken {
            self.pending.add(each.path.as_bytes(), each.all_below);
        }
    }

    /// Add a changed path, perhaps with everything below it; returns false if it is left out.
    pub fn note(&mut self, path: &[u8], is_directory: bool, all_below: bool) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends: Vec<usize> = slashes.map(|(at, _)| at).chain([path.len()]).collect();
        let mut above: &[u8] = b"";
        for end in ends {
            let (entry, is_last) = (path.get(..end).unwrap_or(path), end == path.len());
            let name = entry.strip_prefix(above).unwrap_or(entry);
            let name = name.strip_prefix(b"/").unwrap_or(name);
            if self.leaves_out(above, name, is_directory || !is_last) {
                if is_last {
                    self.pending.add(above, false);
                }
                return false;
            }
            above = entry;
        }
        self.pending.add(path, all_below);
        true
    }

    /// Read and count all present events; their paths become pending, and new directories are watched.
    ///
    /// After a stop, the next call follows the remaining events.
    pub fn read(&mut self, stop: &Stop) -> Result<WatchEvents> {
        let mut room = vec![MaybeUninit::uninit(); ROOM];
        let events = &mut self.events;
        call::read_events(self.queue.as_fd(), &mut room, |number, kind, name| {
            events.push_back((number, kind, name.to_vec()));
        })
        .map_err(|errno| Error::new("watch", b"", errno))?;
        self.add_all(stop);
        let mut new_events = std::mem::take(&mut self.seen);
        while !stop.is_set() {
            let Some((number, kind, name)) = self.events.pop_front() else {
                break;
            };
            self.follow(number, kind, &name, &mut new_events, stop);
        }
        if stop.is_set() {
            self.seen = std::mem::take(&mut new_events);
        }
        Ok(new_events)
    }

    /// Count an event, unless its entry is left out, add its path to the pending ones, and begin or end the watch of
    /// a directory.
    fn follow(
        &mut self,
        number: i32,
        kind: ReadFlags,
        name: &[u8],
        seen: &mut WatchEvents,
        stop: &Stop,
    ) {
        if kind.contains(ReadFlags::QUEUE_OVERFLOW) {
            seen.lost = true;
            return;
        }
        let Some(above) = self.watched.path(number) else {
            return; // of a watch that was ended
        };
        if name.is_empty() {
            let ends = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
            let is_root = above.is_empty();
            seen.gone |= is_root && kind.intersects(ends | ReadFlags::IGNORED);
            seen.events += u64::from(is_root);
            self.pending.add(above, false);
            if kind.contains(ReadFlags::IGNORED) {
                self.watched.forget(number);
            }
            return;
        }
        let is_directory = kind.contains(ReadFlags::ISDIR);
        if self.leaves_out(above, name, is_directory) {
            // It may have changed the time of its directory, for which alone no commit is needed.
            self.pending.add(above, false);
            return;
        }
        seen.events += 1;
        let path = join(above, name);
        self.pending.add(&path, false);
        if is_directory {
            if kind.intersects(ReadFlags::MOVED_FROM | ReadFlags::DELETE) {
                self.unwatch_below(&path);
            } else if !self.watched.has(&path)
                || kind.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
            {
                self.pending.add(&path, true);
                self.unlooked.push(path);
                self.add_all(stop);
            }
        }
    }

    /// Return true for a reserved name, or if an exclude pattern matches.
    fn leaves_out(&self, above: &[u8], name: &[u8], is_directory: bool) -> bool {
        let mut patterns = self.options.patterns.iter();
        is_reserved(name) || patterns.any(|each| each.matches_entry(above, name, is_directory))
    }

    /// Watch the directories in `unlooked`, and everything below them, until a stop; counts those that cannot be,
    /// unless they are gone.
    fn add_all(&mut self, stop: &Stop) {
        while !stop.is_set() {
            let Some(path) = self.unlooked.pop() else {
                return;
            };
            match self.add(&path) {
                Ok(names) => {
                    let paths = names.iter().map(|name| join(&path, name));
                    self.unlooked.extend(paths);
                }
                // It is gone, or is not a directory: its successor causes an event of its own.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => {
                    self.unwatched += 1;
                    self.first
                        .get_or_insert_with(|| Error::new("watch", &path, errno));
                }
            }
        }
    }

    /// Watch one directory; returns the names in it that may be subdirectories, except those that are left out; none,
    /// and no watch, on a file system that is not entered.
    fn add(&mut self, path: &[u8]) -> Outcome<Vec<Vec<u8>>> {
        let directory = self.root.directory(path)?;
        if self.options.one_file_system {
            let device = call::status(directory.as_fd())?.device;
            if device != self.root.device {
                return Ok(Vec::new());
            }
        }
        let number = call::watch(self.queue.as_fd(), directory.as_fd())?;
        self.watched.insert(number, path);
        let mut names = std::mem::take(&mut self.names);
        let read = names.read(directory.as_fd(), |name, kind| {
            let may_be = matches!(kind, FileType::Directory | FileType::Unknown);
            may_be && !self.leaves_out(path, name, true)
        });
        let names_below = names.iter().map(|(name, _)| name.to_bytes().to_vec());
        let names_below = names_below.collect();
        names.relax();
        self.names = names;
        read.map(|()| names_below)
    }

    /// End the watches of the directory at `path` and everything below it.
    fn unwatch_below(&mut self, path: &[u8]) {
        for number in self.watched.below(path) {
            call::unwatch(self.queue.as_fd(), number);
            self.watched.forget(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Folder;

    #[test]
    fn after_a_stop_the_next_call_follows_what_is_left() {
        let folder = Folder::new();
        let options = WatchOptions {
            patterns: Vec::new(),
            one_file_system: true,
            is_noted: false,
            most: 10,
        };
        let (stop, go_on) = (Stop::default(), Stop::default());
        let mut watch = TreeWatch::open(folder.path(), options, &go_on).unwrap();
        watch.take_paths();
        folder.make_directory("new/below");
        stop.set();
        assert_eq!(watch.read(&stop).unwrap().events, 0);
        assert_eq!(watch.take_paths(), None);
        assert_eq!(watch.read(&go_on).unwrap().events, 1);
        let paths = watch.take_paths().unwrap();
        let paths: Vec<_> = paths.iter().map(|each| each.path.as_bytes()).collect();
        assert_eq!(paths, [b"new"]);
        assert_eq!(watch.directories(), 3);
    }
}
