//! Temporary folders for tests.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    dead_code,
    reason = "tests make what the crate works on, and no test uses all of it"
)]

use std::fs::{File, FileTimes};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// An empty folder, removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("huai-tree-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// Make the directory at `path`, and those above it.
    pub(crate) fn make_directory(&self, path: &str) {
        std::fs::create_dir_all(self.0.join(path)).unwrap();
    }

    /// Write the file at `path`.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        std::fs::write(self.0.join(path), content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.0.join(path)).unwrap()
    }

    /// Return the content of the file at `path`, if there is one.
    pub(crate) fn read_if_there(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(path)).ok()
    }

    /// Remove the file at `path`, if there is one.
    pub(crate) fn remove(&self, path: &str) {
        _ = std::fs::remove_file(self.0.join(path));
    }

    /// Set both times of the file at `path` to the epoch.
    pub(crate) fn age(&self, path: &str) {
        let times = FileTimes::new()
            .set_accessed(UNIX_EPOCH)
            .set_modified(UNIX_EPOCH);
        let file = File::options().write(true).open(self.0.join(path));
        file.unwrap().set_times(times).unwrap();
    }

    /// Return the time of the last access to the file at `path`.
    pub(crate) fn accessed(&self, path: &str) -> SystemTime {
        let metadata = std::fs::metadata(self.0.join(path)).unwrap();
        metadata.accessed().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
