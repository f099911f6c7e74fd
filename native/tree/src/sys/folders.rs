//! The open directories of a tree that is worked in: a few are kept.
//!
//! No component that is a symlink is followed, and no mount is entered (`XDEV`), so a handle is
//! always one of a directory below the root, and of its own mount.  Rule to keep: whoever renames or removes a directory calls `forget`.
//!
//! A directory of this user without u+rwx (mode 0555, as many mirrors have them) gets these rights
//! when they are needed; `restore_modes` takes them back.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use huai_format::path::{parent, path_order};
use rustix::io::Errno;

use super::call::{self, Outcome};
use super::change;
use super::handle::Root;
use super::stop::Stop;

/// How many handles are kept; callers use only a few at a time.
const CAPACITY: usize = 128;

const OWNER_MAY_ALL: u32 = 0o700;

/// The directories below one root.
#[derive(Debug)]
pub(crate) struct Folders {
    root: Arc<OwnedFd>,
    beneath: Root,
    /// Whose directories may get u+rwx.
    loosens: Option<u32>,
    open: HashMap<Vec<u8>, Known>,
    uses: u64,
    /// The modes that directories had before.
    loosened: BTreeMap<InTreeOrder, u32>,
}

/// The path of a directory, right before the paths of all directories below it.
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

/// A handle that is kept.
#[derive(Debug)]
struct Known {
    handle: Arc<OwnedFd>,
    last_use: u64,
}

impl Folders {
    /// Those below `root`; directories of the user `loosens` may get u+rwx.
    pub(crate) fn new(root: OwnedFd, loosens: Option<u32>) -> Outcome<Self> {
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

    /// The root itself, open to be read.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// A handle to go further down from.  `NOTDIR`: a symlink or another non-directory on the way.
    pub(crate) fn open(&mut self, path: &[u8]) -> Outcome<Arc<OwnedFd>> {
        if path.is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        self.uses += 1;
        if let Some(known) = self.open.get_mut(path) {
            known.last_use = self.uses;
            return Ok(Arc::clone(&known.handle));
        }
        let handle = Arc::new(self.descend(path)?);
        if self.open.len() >= CAPACITY {
            self.drop_oldest();
        }
        let known = Known {
            handle: Arc::clone(&handle),
            last_use: self.uses,
        };
        self.open.insert(path.to_vec(), known);
        Ok(handle)
    }

    fn drop_oldest(&mut self) {
        let oldest = self.open.iter().min_by_key(|(_, known)| known.last_use);
        if let Some(path) = oldest.map(|(path, _)| path.clone()) {
            self.open.remove(&path);
        }
    }

    fn descend(&mut self, path: &[u8]) -> Outcome<OwnedFd> {
        match self.beneath.pass_within(path) {
            Some(Err(Errno::LOOP)) => Err(Errno::NOTDIR),
            // On the way rights may be lacking that this user may give; and the kernel takes no path
            // that is longer than all of ours may be with the trash before it.
            Some(Err(Errno::ACCESS | Errno::NAMETOOLONG)) | None => self.walk(path),
            Some(outcome) => outcome,
        }
    }

    /// Component by component, from the nearest directory that is known.
    fn walk(&mut self, path: &[u8]) -> Outcome<OwnedFd> {
        let mut place = parent(path);
        while !place.is_empty() && !self.open.contains_key(place) {
            place = parent(place);
        }
        let start = match self.open.get(place) {
            Some(known) => Arc::clone(&known.handle),
            None => Arc::clone(&self.root),
        };
        let mut here: Option<OwnedFd> = None;
        let mut begin = place.len() + usize::from(!place.is_empty());
        for name in path[begin..].split(|byte| *byte == b'/') {
            let from = here.as_ref().map_or(start.as_fd(), AsFd::as_fd);
            let place = &path[..begin.saturating_sub(1)];
            here = Some(self.enter(from, name, place)?);
            begin += name.len() + 1;
        }
        here.ok_or(Errno::INVAL)
    }

    fn enter(&mut self, from: BorrowedFd<'_>, name: &[u8], place: &[u8]) -> Outcome<OwnedFd> {
        let handle = match call::step(from, name) {
            Err(Errno::ACCESS) if self.loosen(from, place)? => call::step(from, name),
            outcome => outcome,
        }?;
        if self.beneath.is_within(&call::status(handle.as_fd())?) {
            Ok(handle)
        } else {
            Err(Errno::XDEV)
        }
    }

    /// Gives a directory u+rwx; false if this is not allowed, or it has them.
    pub(crate) fn make_writable(&mut self, path: &[u8]) -> Outcome<bool> {
        let handle = self.open(path)?;
        self.loosen(handle.as_fd(), path)
    }

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

    /// Calls `operation`; if it fails for lack of permission, gives `folders` u+rwx and repeats.
    pub(crate) fn permitted<T>(
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

    /// A directory has its final mode, which `restore_modes` must not change.
    pub(crate) fn settled(&mut self, path: &[u8]) {
        self.loosened.remove(&InTreeOrder(path.to_vec()));
    }

    /// Restores the modes of directories that got u+rwx; gives the paths where this failed.
    ///
    /// After a stop, those that are left are restored by the next call.
    pub(crate) fn restore_modes(&mut self, stop: &Stop) -> Vec<Vec<u8>> {
        let mut failed = Vec::new();
        // Children first: on the way, a directory above may have to get u+rwx again.
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

    /// `old` was removed, or renamed to `new`, with everything below it.
    pub(crate) fn forget(&mut self, old: &[u8], new: Option<&[u8]>) {
        self.open.retain(|path, _| below(path, old).is_none());
        let later = self.loosened.range(InTreeOrder(old.to_vec())..);
        let found: Vec<_> = later
            .map(|(path, _)| path.clone())
            .take_while(|path| below(&path.0, old).is_some())
            .collect();
        for path in found {
            let mode = self.loosened.remove(&path);
            if let (Some(mode), Some(new), Some(rest)) = (mode, new, below(&path.0, old)) {
                let path = InTreeOrder([new, rest].concat());
                self.loosened.insert(path, mode);
            }
        }
    }

    /// Lets go of all handles, so that renames by others are seen.
    pub(crate) fn refresh(&mut self) {
        self.open.clear();
    }
}

/// What follows `top` in a path at or below it.
fn below<'a>(path: &'a [u8], top: &[u8]) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(top)?;
    (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps;

    /// An empty root, in which `count` directories got u+rwx that are gone now.
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
