//! Removes a private directory with everything below it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::call::{self, Outcome};
use super::change;
use super::error::{Error, Result};
use super::listing::Names;
use super::stop::Stop;

const OWNER_MAY_ALL: u32 = 0o700;

/// A removal that descends by name and ascends by "..": few handles are open at any depth.  Only
/// for directories that no other user can change.
#[derive(Debug)]
struct Removal {
    current: OwnedFd,
    /// The directories from the top down, each with its remaining subdirectories.
    line: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    names: Names,
}

/// Remove `name`, with everything below, in the directory open as `folder`; it may be missing.
/// Fails with `CANCELED` after a stop.
pub fn remove_all(folder: u32, name: &[u8], stop: &Stop) -> Result<()> {
    let failed = |errno| Error::new("remove", name, errno);
    let above = call::reopen(folder).map_err(failed)?;
    match change::unlink(above.as_fd(), name) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err(failed(errno)),
    }
    let mut removal = Removal {
        current: open_own(above.as_fd(), name).map_err(failed)?,
        line: Vec::new(),
        names: Names::default(),
    };
    let removed = removal.run(above.as_fd(), name, stop);
    removed.map_err(|errno| Error::new("remove", &removal.path(name), errno))
}

impl Removal {
    /// Remove the current directory with everything below it, which is `name` in `above`.
    fn run(&mut self, above: BorrowedFd<'_>, name: &[u8], stop: &Stop) -> Outcome<()> {
        self.empty(name)?;
        while let Some((_, folders)) = self.line.last_mut() {
            #[cfg(test)]
            crate::steps::count();
            if stop.is_set() {
                return Err(Errno::CANCELED);
            }
            if let Some(name) = folders.pop() {
                // Most are empty once their files were published.
                match change::remove_directory(self.current.as_fd(), &name) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::NOTEMPTY | Errno::EXIST) => {
                        self.current = open_own(self.current.as_fd(), &name)?;
                        self.empty(&name)?;
                    }
                    Err(errno) => return Err(errno),
                }
            } else if let Some((name, _)) = self.line.pop() {
                if self.line.is_empty() {
                    return change::remove_directory(above, &name);
                }
                self.current = call::open_for_reading(self.current.as_fd(), b"..")?;
                change::remove_directory(self.current.as_fd(), &name)?;
            }
        }
        Ok(())
    }

    /// Remove all entries that are not directories from the current directory, called `name`; adds the
    /// directories to `line`.
    fn empty(&mut self, name: &[u8]) -> Outcome<()> {
        let current = self.current.as_fd();
        let mut folders = Vec::new();
        self.names.read(current, |_, _| true)?;
        for (leaf, kind) in self.names.iter() {
            #[cfg(test)]
            crate::steps::count();
            if kind != FileType::Directory {
                match change::unlink(current, leaf.to_bytes()) {
                    Ok(()) | Err(Errno::NOENT) => continue,
                    Err(Errno::ISDIR) => {} // where the file system does not say what it is
                    Err(errno) => return Err(errno),
                }
            }
            folders.push(leaf.to_bytes().to_vec());
        }
        self.line.push((name.to_vec(), folders));
        Ok(())
    }

    /// Return the path of the current directory, which begins with `top`, the name to remove.
    fn path(&self, top: &[u8]) -> Vec<u8> {
        let names: Vec<&[u8]> = self.line.iter().map(|(name, _)| name.as_slice()).collect();
        if names.is_empty() {
            top.to_vec()
        } else {
            names.join(&b'/')
        }
    }
}

/// Open a directory, and give its owner all permissions, whatever its mode is.
fn open_own(directory: BorrowedFd<'_>, name: &[u8]) -> Outcome<OwnedFd> {
    let opened = match call::open_for_reading(directory, name) {
        Err(Errno::ACCESS) => {
            change::set_mode_at(directory, name, OWNER_MAY_ALL)?;
            call::open_for_reading(directory, name)?
        }
        other => other?,
    };
    if call::status(opened.as_fd())?.mode & OWNER_MAY_ALL != OWNER_MAY_ALL {
        change::set_mode(opened.as_fd(), OWNER_MAY_ALL)?;
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::steps;
    use crate::temporary::Folder;

    /// Return the steps to remove a directory with these entries.
    fn removal(paths: impl Iterator<Item = String>) -> u64 {
        let folder = Folder::new();
        folder.make_directory("top");
        for path in paths {
            folder.make_directory(&format!("top/{path}"));
            folder.write(&format!("top/{path}/file"), b"");
        }
        let handle = call::open_root(folder.path()).unwrap();
        let number = u32::try_from(handle.as_raw_fd()).unwrap();
        let count = steps::of(|| remove_all(number, b"top", &Stop::default()).unwrap());
        assert!(call::status_at(handle.as_fd(), &b"top"[..]).is_err());
        count
    }

    #[test]
    fn twice_the_directories_take_twice_the_steps() {
        let wide = |count: usize| removal((0..count).map(|number| number.to_string()));
        let deep = |count: usize| removal((1..=count).map(|depth| vec!["d"; depth].join("/")));
        for removal in [&wide as &dyn Fn(usize) -> u64, &deep] {
            let (one, two) = (removal(100), removal(200));
            assert!(two <= 2 * one + 10, "{one} {two}");
        }
    }
}
