//! Writes some files and directories to disk, without the rest of their file system.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use huai_format::path::split;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};

use super::files::{LastFolder, Staged};
use super::tree::{Tree, is_absence};

/// The files that are written at a time, so that a journal commits several of them at once.
const AT_ONCE: usize = 8;

impl Tree {
    /// Write staged files to disk; missing ones are passed over.  False: one cannot be opened or written.
    pub fn sync_staged(&self, items: &[Staged]) -> Result<bool> {
        let mut last = LastFolder::default();
        sync_each(items.iter().map(|staged| {
            let folder = last.open(staged.folder)?;
            call::open_file_at(folder, &staged.name)
        }))
    }

    /// Write files and directories with their attributes to disk; missing ones are passed over.
    /// False: one cannot be opened or written, such as a symlink.
    pub fn sync_paths(&mut self, paths: &[Vec<u8>]) -> Result<bool> {
        let folders = &mut self.folders;
        sync_each(paths.iter().map(|path| {
            let (above, name) = split(path);
            let name = if name.is_empty() { b"." } else { name };
            call::open_file_at(folders.open(above)?.as_fd(), name)
        }))
    }
}

fn sync_each(opened: impl Iterator<Item = Outcome<OwnedFd>>) -> Result<bool> {
    let mut files = Vec::new();
    for file in opened {
        match file {
            Ok(file) => files.push(file),
            Err(errno) if is_absence(errno) => {}
            Err(_) => return Ok(false),
        }
    }
    let part = files.len().div_ceil(AT_ONCE).max(1);
    let written = thread::scope(|scope| {
        let sync = |part: &[OwnedFd]| part.iter().try_for_each(|file| change::sync(file.as_fd()));
        let threads: Vec<_> = files
            .chunks(part)
            .map(|part| scope.spawn(move || sync(part)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or(Err(Errno::IO)))
    });
    match written {
        Ok(()) => Ok(true),
        // Some file systems cannot write single files.
        Err(Errno::INVAL | Errno::ROFS) => Ok(false),
        Err(errno) => Err(Error::new("sync", b"", errno)),
    }
}
