//! Makes files below a private folder, to which no other user writes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use huai_format::path::split;
use huai_sys::call::{self, Outcome, Status};
use huai_sys::change;
use huai_sys::error::Errno;

/// The mode bits that a file may have before it is published.
const MODES: u32 = 0o777;
const OURS: u32 = 0o600;

/// A maker of files and the directories above them; those of the last file stay open.
#[derive(Debug)]
pub(crate) struct Targets {
    root: OwnedFd,
    /// The open directories from the top down, each with the length of its path.
    open: Vec<(usize, OwnedFd)>,
    /// The path of the last of them, also after an error.
    path: Vec<u8>,
    /// The mode of a new file in the last directory, and its status.
    examined: Option<(u32, Status)>,
}

impl Targets {
    /// Work below the open directory `folder` of this process.
    pub(crate) fn below(folder: u32) -> Outcome<Self> {
        Ok(Self {
            root: call::reopen(folder)?,
            open: Vec::new(),
            path: Vec::new(),
            examined: None,
        })
    }

    /// Make an empty file, which must not exist, and the missing directories above it.  The folder
    /// is private, so it may have its final `mode` from the beginning; but its owner can read and
    /// write it.
    pub(crate) fn make(&mut self, path: &[u8], mode: u32) -> Outcome<OwnedFd> {
        let (above, name) = split(path);
        let mode = mode & MODES | OURS;
        change::make_file_with(self.enter(above)?, name, mode)
    }

    /// Return a status with owner and mode of `file`, the last that `make` made, with this `mode`.
    ///
    /// The directory, the mode and the process decide them, so one file of each is examined.
    pub(crate) fn status_of_new(&mut self, file: BorrowedFd<'_>, mode: u32) -> Outcome<Status> {
        match self.examined {
            Some((examined_mode, status)) if examined_mode == mode => Ok(status),
            _ => {
                let status = call::status(file)?;
                self.examined = Some((mode, status));
                Ok(status)
            }
        }
    }

    /// Remove a file that `make` made.
    pub(crate) fn discard(&mut self, path: &[u8]) -> Outcome<()> {
        let (above, name) = split(path);
        change::unlink(self.enter(above)?, name)
    }

    /// Open the directory at `path` and keep it open, making those on the way that are missing.
    /// After an error, those above the failed one stay open.
    fn enter(&mut self, path: &[u8]) -> Outcome<BorrowedFd<'_>> {
        if self.path != path {
            self.examined = None;
            let open_path = self.path.as_slice();
            let shared = |end: usize| open_path.get(..end) == path.get(..end) && ends(path, end);
            let shared_count = self.open.iter().take_while(|(end, _)| shared(*end)).count();
            self.open.truncate(shared_count);
            let mut end = self.open.last().map_or(0, |(end, _)| *end);
            self.path.truncate(end);
            while end < path.len() {
                let begin = end + usize::from(end > 0);
                let rest = path.get(begin..).unwrap_or_default();
                let length = rest.iter().position(|byte| *byte == b'/');
                let name = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
                let next = self.step(name)?;
                self.path
                    .extend_from_slice(path.get(end..begin).unwrap_or_default());
                self.path.extend_from_slice(name);
                end = begin + name.len();
                self.open.push((end, next));
            }
        }
        Ok(self.last())
    }

    /// Open the subdirectory `name`, made if it is missing.
    fn step(&self, name: &[u8]) -> Outcome<OwnedFd> {
        match change::make_directory(self.last(), name) {
            Ok(()) | Err(Errno::EXIST) => call::open_for_lookups(self.last(), name),
            Err(errno) => Err(errno),
        }
    }

    fn last(&self) -> BorrowedFd<'_> {
        self.open
            .last()
            .map_or(self.root.as_fd(), |(_, directory)| directory.as_fd())
    }
}

/// Return true if a component of `path` ends at `end`.
fn ends(path: &[u8], end: usize) -> bool {
    matches!(path.get(end), None | Some(b'/'))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::temporary::Folder;

    fn component_ends(path: &[u8]) -> Vec<usize> {
        (1..=path.len()).filter(|end| ends(path, *end)).collect()
    }

    #[test]
    fn the_status_of_a_new_file_is_that_of_the_kernel() {
        let folder = Folder::new();
        folder.make_directory("b");
        let root = call::open_root(folder.path()).unwrap();
        // The files of a directory with set-gid get its group; not every user may set another.
        let _ = change::set_owner_at(root.as_fd(), b"b", change::LEAVE, 1);
        change::set_mode_at(root.as_fd(), b"b", 0o2700).unwrap();
        let number = u32::try_from(root.as_raw_fd()).unwrap();
        let mut targets = Targets::below(number).unwrap();
        for path in [&b"a/1"[..], b"a/2", b"b/1", b"b/2", b"3"] {
            for mode in [0o777, 0o600, 0o644, 0o777] {
                let file = targets.make(path, mode).unwrap();
                let status_of_new = targets.status_of_new(file.as_fd(), mode).unwrap();
                let status = call::status(file.as_fd()).unwrap();
                let attributes = |status: &Status| (status.mode, status.user, status.group);
                assert_eq!(attributes(&status_of_new), attributes(&status));
                targets.discard(path).unwrap();
            }
        }
    }

    #[test]
    fn components_end_at_slashes() {
        assert_eq!(component_ends(b"a/bc"), [1, 4]);
        assert_eq!(component_ends(b""), [0; 0]);
    }
    #[test]
    fn a_file_after_an_error_is_made_in_its_own_directory() {
        let folder = Folder::new();
        folder.make_directory("long");
        folder.write("long/file", b"");
        let handle = call::open_folder(folder.path()).unwrap();
        let mut targets = Targets::below(handle.as_raw_fd().cast_unsigned()).unwrap();
        assert_eq!(
            targets.make(b"long/file/a", OURS).unwrap_err(),
            Errno::NOTDIR
        );
        targets.make(b"b", OURS).unwrap();
        targets.make(b"x/c", OURS).unwrap();
        let _: Vec<u8> = folder.read("b");
        let _: Vec<u8> = folder.read("x/c");
    }
}
