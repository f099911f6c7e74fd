//! Keeping files that are removed or replaced.

use std::collections::HashSet;
use std::os::fd::AsFd;

use huai_format::path::parent;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::row::{At, Done, Reason, at};
use super::tree::{Tree, split};
use crate::call;
use crate::change;

/// Where former files go.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// None: nothing is kept.
    top: Option<Vec<u8>>,
    /// The directories that are there.
    made: HashSet<Vec<u8>>,
}

impl Former {
    pub(super) fn below(top: Vec<u8>) -> Self {
        Self {
            top: Some(top),
            made: HashSet::new(),
        }
    }

    pub(super) fn keeps(&self) -> bool {
        self.top.is_some()
    }
}

impl Tree {
    /// Links the file at `path`, which is about to be replaced, to where it is kept.
    pub(super) fn keep_former(&mut self, path: &[u8]) -> Done {
        if !self.former.keeps() {
            return Ok(());
        }
        match self.status(path).at(path)? {
            Some(status) if status.kind != FileType::Directory => {}
            _ => return Ok(()),
        }
        let kept = self.kept_at(path)?;
        let (above, name) = split(path);
        let (kept_above, kept_name) = split(&kept);
        let source = self.folders.open(above).at(path)?;
        let target = self.folders.open(kept_above).at(path)?;
        match change::make_link(source.as_fd(), name, target.as_fd(), kept_name) {
            // This run kept an older file of that path: it counts.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno @ (Errno::PERM | Errno::MLINK | Errno::NOTSUP)) => {
                Err(at(path, Reason::NotKept(errno)))
            }
            Err(errno) => Err(at(path, errno)),
        }
    }

    /// Renames the leaf at `path` to where it is kept.
    pub(super) fn take_away(&mut self, path: &[u8]) -> Done {
        let (above, name) = split(path);
        let source = self.folders.open(above).at(path)?;
        if call::status_at(source.as_fd(), name).at(path)?.kind == FileType::Directory {
            return Err(at(path, Errno::ISDIR));
        }
        let kept = self.kept_at(path)?;
        let (kept_above, kept_name) = split(&kept);
        let target = self.folders.open(kept_above).at(path)?;
        change::rename((source.as_fd(), name), (target.as_fd(), kept_name)).at(path)
    }

    /// Where `path` is kept; makes the directories above that.
    fn kept_at(&mut self, path: &[u8]) -> Result<Vec<u8>, super::Failure> {
        let top = self.former.top.as_deref();
        let top = top.ok_or(Errno::INVAL).at(path)?;
        let kept = [top, b"/".as_slice(), path].concat();
        let mut missing = Vec::new();
        let mut folder = parent(&kept);
        while !folder.is_empty() && !self.former.made.contains(folder) {
            missing.push(folder);
            folder = parent(folder);
        }
        for folder in missing.into_iter().rev() {
            self.make(folder).at(path)?;
            self.former.made.insert(folder.to_vec());
        }
        Ok(kept)
    }
}
