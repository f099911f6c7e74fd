//! Caches open directories of a tree that is changed.
//!
//! No symlink is followed, and no mount is entered (`XDEV`), so a handle is
//! always that of a directory below the root, and of its own mount.  Rule to keep: a caller that
//! renames or removes a directory calls `forget`.
//!
//! A directory of this user without u+rwx (mode 0555, as in many mirrors) gets these rights
//! when needed; `restore_modes` reverts this.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use huai_format::path::{below, parent, path_order};
use rustix::io::Errno;

use super::call::{self, Outcome};
use super::change;
use super::handle::Root;
use super::stop::Stop;

/// The most handles that are kept; callers use only a few at a time.
const CAPACITY: usize = 128;

const OWNER_MAY_ALL: u32 = 0o700;

/// The directories below one root.
#[derive(Debug)]
pub struct Folders {
    root: Arc<OwnedFd>,
    beneath: Root,
    /// The user whose directories may get u+rwx.
    loosens: Option<u32>,
    open: HashMap<Vec<u8>, KeptHandle>,
    uses: u64,
    /// The former modes of directories.
    loosened: BTreeMap<InTreeOrder, u32>,
}

/// A path in path order: it sorts right before all paths below it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InTreeOrder(Vec<u8>);

impl Ord for InTreeOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        #[cfg(test)]
        crate::steps::count();
        path_order(&self.0, &other.0)
    }
}

impl PartialOrd for InTreeOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An open handle.
#[derive(Debug)]
struct KeptHandle {
    handle: Arc<OwnedFd>,
    last_use: u64,
}

impl Folders {
    /// Open directories below `root`; directories of the user `loosens` may get u+rwx.
    pub fn new(root: OwnedFd, loosens: Option<u32>) -> Outcome<Self> {
        let beneath = root.try_clone().map_err(|_| Errno::MFILE)?;
        Ok(Self {
            root: Arc::new(root),
            beneath: Root::try_of(beneath)?,
            loosens,
            open: HashMap::new(),
            uses: 0,
            loosened: BTreeMap::new(),
        })
    }

    /// Return the root, open for reading.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Return a handle of the directory at `path` for lookups, and keep it open.  `NOTDIR` means a
    /// symlink or another non-directory on the way, `XDEV` a mount.
    ///
    /// Directories above it get u+rwx if that is needed and allowed.
    pub fn open(&mut self, path: &[u8]) -> Outcome<Arc<OwnedFd>> {
        if path.is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        self.uses += 1;
        if let Some(kept) = self.open.get_mut(path) {
            kept.last_use = self.uses;
            return Ok(Arc::clone(&kept.handle));
        }
        let handle = Arc::new(self.descend(path)?);
        if self.open.len() >= CAPACITY {
            self.drop_oldest();
        }
        let kept_handle = KeptHandle {
            handle: Arc::clone(&handle),
            last_use: self.uses,
        };
        self.open.insert(path.to_vec(), kept_handle);
        Ok(handle)
    }

    /// Close the folder that was not used for longest.
    fn drop_oldest(&mut self) {
        let oldest = self.open.iter().min_by_key(|(_, known)| known.last_use);
        if let Some(path) = oldest.map(|(path, _)| path.clone()) {
            self.open.remove(&path);
        }
    }

    /// Open a directory below the root without following symlinks.
    fn descend(&mut self, path: &[u8]) -> Outcome<OwnedFd> {
        match self.beneath.open_at_once_within(path) {
            Some(Err(Errno::LOOP)) => Err(Errno::NOTDIR),
            // Permissions may be lacking that this user can set, and the kernel refuses a path
            // that became too long by the trash before it.
            Some(Err(Errno::ACCESS | Errno::NAMETOOLONG)) | None => self.walk(path),
            Some(outcome) => outcome,
        }
    }

    /// Open component by component, beginning at the nearest open directory.
    fn walk(&mut self, path: &[u8]) -> Outcome<OwnedFd> {
        let mut above = parent(path);
        while !above.is_empty() && !self.open.contains_key(above) {
            above = parent(above);
        }
        let start = match self.open.get(above) {
            Some(known) => Arc::clone(&known.handle),
            None => Arc::clone(&self.root),
        };
        let mut opened: Option<OwnedFd> = None;
        let mut begin = above.len() + usize::from(!above.is_empty());
        for name in path[begin..].split(|byte| *byte == b'/') {
            let from = opened.as_ref().map_or(start.as_fd(), AsFd::as_fd);
            let above = &path[..begin.saturating_sub(1)];
            opened = Some(self.enter(from, name, above)?);
            begin += name.len() + 1;
        }
        opened.ok_or(Errno::INVAL)
    }

    /// Open `name` in the directory at `path`, which gets u+rwx if needed; `XDEV` for a mount.
    fn enter(&mut self, from: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Outcome<OwnedFd> {
        let handle = match call::open_for_lookups(from, name) {
            Err(Errno::ACCESS) if self.loosen(from, path)? => call::open_for_lookups(from, name),
            outcome => outcome,
        }?;
        if self.beneath.is_within(&call::status(handle.as_fd())?) {
            Ok(handle)
        } else {
            Err(Errno::XDEV)
        }
    }

    /// Give a directory u+rwx until `restore_modes`; false if this is not allowed, or it has them.
    pub fn make_writable(&mut self, path: &[u8]) -> Outcome<bool> {
        let handle = self.open(path)?;
        self.loosen(handle.as_fd(), path)
    }

    /// Give the open directory at `path` u+rwx, and keep its mode for `restore_modes`; false as for `make_writable`.
    fn loosen(&mut self, handle: BorrowedFd<'_>, path: &[u8]) -> Outcome<bool> {
        let status = call::status(handle)?;
        let ours = self.loosens == Some(status.user);
        if !ours || status.mode & OWNER_MAY_ALL == OWNER_MAY_ALL {
            return Ok(false);
        }
        change::set_mode_by_path(handle, status.mode | OWNER_MAY_ALL)?;
        let path = InTreeOrder(path.to_vec());
        self.loosened.entry(path).or_insert(status.mode);
        Ok(true)
    }

    /// Call `operation`; if it fails for lack of permission, give `folders` u+rwx and call it once
    /// more.  The first error stays if none of them gets a right.
    pub fn with_permission<T>(
        &mut self,
        folders: &[&[u8]],
        mut operation: impl FnMut(&mut Self) -> Outcome<T>,
    ) -> Outcome<T> {
        let outcome = operation(self);
        if !matches!(outcome, Err(Errno::ACCESS)) {
            return outcome;
        }
        let mut any = false;
        for folder in folders {
            any |= self.make_writable(folder)?;
        }
        if any { operation(self) } else { outcome }
    }

    /// Mark the mode of a directory as final, so that `restore_modes` does not change it.
    pub fn settle_mode(&mut self, path: &[u8]) {
        self.loosened.remove(&InTreeOrder(path.to_vec()));
    }

    /// Restore the modes of directories that got u+rwx; returns the paths where this failed.
    ///
    /// After a stop, the next call restores the rest.
    pub fn restore_modes(&mut self, stop: &Stop) -> Vec<Vec<u8>> {
        let mut failed = Vec::new();
        // Children come first: on the way, a directory above may have to get u+rwx again.
        while !stop.is_set() {
            let Some((InTreeOrder(path), mode)) = self.loosened.pop_last() else {
                break;
            };
            let restored = self
                .open(&path)
                .and_then(|handle| change::set_mode_by_path(handle.as_fd(), mode));
            if restored.is_err() {
                failed.push(path);
            }
        }
        failed
    }

    /// Forget `old`, which was removed, or renamed to `new`, with everything below it.  Modes to restore move along,
    /// or are dropped.
    pub fn forget(&mut self, old: &[u8], new: Option<&[u8]>) {
        self.open.retain(|path, _| below(path, old).is_none());
        let later = self.loosened.range(InTreeOrder(old.to_vec())..);
        let moved: Vec<_> = later
            .map(|(path, _)| path.clone())
            .take_while(|path| below(&path.0, old).is_some())
            .collect();
        for path in moved {
            let mode = self.loosened.remove(&path);
            if let (Some(mode), Some(new), Some(rest)) = (mode, new, below(&path.0, old)) {
                let path = InTreeOrder([new, rest].concat());
                self.loosened.insert(path, mode);
            }
        }
    }

    /// Close all handles, so that renames by other processes are seen.
    pub fn refresh(&mut self) {
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps;

    /// Make an empty root, in which `count` directories got u+rwx and were then removed.
    fn loosened(count: u32) -> Folders {
        let root = call::open_root(b"/proc/self/fd").unwrap();
        let mut folders = Folders::new(root, None).unwrap();
        for number in 0..count {
            let path = InTreeOrder(format!("top/{number}/sub").into_bytes());
            folders.loosened.insert(path, 0o555);
        }
        folders
    }

    fn name(number: u32) -> Vec<u8> {
        format!("top/{number}").into_bytes()
    }

    #[test]
    fn restoring_and_forgetting_take_hardly_more_steps_for_each_of_more_directories() {
        let restore = |count| {
            let mut folders = loosened(count);
            steps::of(|| {
                let failed = folders.restore_modes(&Stop::default());
                assert_eq!(failed.len(), count as usize);
            })
        };
        let forget = |count| {
            let mut folders = loosened(count);
            steps::of(|| {
                for number in 0..count {
                    folders.forget(&name(number), None);
                }
                assert!(folders.loosened.is_empty());
            })
        };
        let rename = |count| {
            let mut folders = loosened(count);
            steps::of(|| folders.forget(b"top/7", Some(b"other")))
        };
        for work in [&restore as &dyn Fn(u32) -> u64, &forget, &rename] {
            assert!(work(8_000) <= 16 * work(1_000).max(10));
        }
    }

    #[test]
    fn a_renamed_directory_takes_along_what_is_below_it_and_nothing_else() {
        let mut folders = loosened(0);
        for path in ["a", "a-b", "a/x", "a/x/y", "a0", "b"] {
            let path = InTreeOrder(path.as_bytes().to_vec());
            folders.loosened.insert(path, 0o555);
        }
        folders.forget(b"a", Some(b"c/d"));
        let paths: Vec<_> = folders.loosened.keys().map(|path| &*path.0).collect();
        let expected: [&[u8]; 6] = [b"a-b", b"a0", b"b", b"c/d", b"c/d/x", b"c/d/x/y"];
        assert_eq!(paths, expected);
    }

    #[test]
    fn after_a_stop_the_next_call_restores_the_rest() {
        let mut folders = loosened(3);
        let stop = Stop::default();
        stop.set();
        assert!(folders.restore_modes(&stop).is_empty());
        assert_eq!(folders.restore_modes(&Stop::default()).len(), 3);
    }
}
