//! Renames entries to their paths, and keeps the files that are removed or replaced.

use std::os::fd::AsFd;

use huai_format::path::{parent, split};
use huai_sys::call::{self, FileType, Outcome};
use huai_sys::change::{self, NameIn};
use huai_sys::error::Errno;

use super::row::{At, Done, FailureReason, OperationFailure, at};
use super::tree::Tree;

/// The name in the staging area under which hardlinks and symlinks are made.
const MAKING: &[u8] = b"making";

impl Tree {
    /// Rename `from` to `path`; if the run keeps files, a former leaf there is linked to its
    /// place first.  A directory above may get u+rwx for it, until `restore_modes`.
    pub(super) fn publish_entry(
        &mut self,
        from: NameIn<'_>,
        path: &[u8],
    ) -> Result<(), OperationFailure> {
        self.keep_former(path)?;
        let (above, name) = split(path);
        self.folders
            .with_permission(&[above], |folders| {
                change::rename(from, (folders.open(above)?.as_fd(), name))
            })
            .at(path)
    }

    /// Make an entry under a temporary name, then rename it to `path` by `publish_entry`; the temporary name is
    /// removed after an error.  Fails with `BADF` before `stage_in`.
    pub(super) fn make_and_publish(
        &mut self,
        path: &[u8],
        make: impl Fn(NameIn<'_>) -> Outcome<()>,
    ) -> Result<(), OperationFailure> {
        let area = self.area.take().ok_or(Errno::BADF).at(path)?;
        let making = (area.as_fd(), MAKING);
        let mut outcome = make(making);
        if outcome == Err(Errno::EXIST) {
            // A run that was killed here left one behind.
            outcome = change::unlink(making.0, making.1).and_then(|()| make(making));
        }
        let put = outcome
            .at(path)
            .and_then(|()| self.publish_entry(making, path));
        let tidied = match &put {
            Ok(()) => Ok(()),
            Err(_) => match change::unlink(making.0, making.1) {
                Err(Errno::NOENT) => Ok(()),
                outcome => outcome,
            },
        };
        self.area = Some(area);
        tidied.at(path).and(put)
    }

    /// Link the leaf at `path`, which is replaced next, to its place among the kept files; does nothing if the run
    /// keeps none, or no leaf is there.  A file that this run kept there before stays; fails with `NotKept` if no
    /// hardlink can be made.
    pub(super) fn keep_former(&mut self, path: &[u8]) -> Done {
        if !self.former.keeps() {
            return Ok(());
        }
        match self.status(path).at(path)? {
            Some(status) if status.kind != FileType::Directory => {}
            _ => return Ok(()),
        }
        let kept_path = self.kept_at(path)?;
        let (above, name) = split(path);
        let (kept_above, kept_name) = split(&kept_path);
        let source = self.folders.open(above).at(path)?;
        let target = self.folders.open(kept_above).at(path)?;
        match change::make_link(source.as_fd(), name, target.as_fd(), kept_name) {
            // An older file of that path, kept_path by this run, takes precedence.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno @ (Errno::PERM | Errno::MLINK | Errno::NOTSUP)) => {
                Err(at(path, FailureReason::NotKept(errno)))
            }
            Err(errno) => Err(at(path, errno)),
        }
    }

    /// Move the leaf at `path` to its place among the kept files, replacing one there; fails with
    /// `ISDIR` for a directory.
    pub(super) fn move_to_kept(&mut self, path: &[u8]) -> Done {
        let (above, name) = split(path);
        let source = self.folders.open(above).at(path)?;
        if call::status_at(source.as_fd(), name).at(path)?.kind == FileType::Directory {
            return Err(at(path, Errno::ISDIR));
        }
        let kept_path = self.kept_at(path)?;
        let (kept_above, kept_name) = split(&kept_path);
        let target = self.folders.open(kept_above).at(path)?;
        change::rename((source.as_fd(), name), (target.as_fd(), kept_name)).at(path)
    }

    /// Return the place of `path` among the kept files, making the directories above it; `INVAL` if none are kept.
    fn kept_at(&mut self, path: &[u8]) -> Result<Vec<u8>, OperationFailure> {
        let top = self.former.top.as_deref();
        let top = top.ok_or(Errno::INVAL).at(path)?;
        let target = [top, b"/".as_slice(), path].concat();
        let mut missing = Vec::new();
        let mut folder = parent(&target);
        while !folder.is_empty() && !self.former.made.contains(folder) {
            missing.push(folder);
            folder = parent(folder);
        }
        for folder in missing.into_iter().rev() {
            self.make(folder).at(path)?;
            self.former.made.insert(folder.to_vec());
        }
        Ok(target)
    }
}
