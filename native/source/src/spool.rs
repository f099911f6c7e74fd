//! Bytes that wait in a store, written and read in large parts.

use std::io::{self, Read, Seek, SeekFrom, Write};

use huai_git::error::{Error, Result};

/// Bytes that are written at once, at least.
const WRITTEN: usize = 256 << 10;
/// Bytes that are read at once, at least.
const READ: usize = 32 << 10;

/// A file or a buffer in which entries wait.
pub trait EntryStore: Read + Write + Seek {}

impl<S: Read + Write + Seek> EntryStore for S {}

/// A store, and the bytes that were appended or read last.
#[derive(Debug)]
pub(crate) struct Spool<S> {
    store: S,
    /// Bytes in the store.
    stored: u64,
    /// The bytes that follow those in the store.
    unwritten: Vec<u8>,
    /// The offset of the bytes that were read last.
    begin: u64,
    window: Vec<u8>,
}

impl<S: EntryStore> Spool<S> {
    /// Begin with an empty store.
    pub(crate) fn new(store: S) -> Self {
        Self {
            store,
            stored: 0,
            unwritten: Vec::new(),
            begin: 0,
            window: Vec::new(),
        }
    }

    /// Append bytes; returns their offset.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        if self.unwritten.len().saturating_add(bytes.len()) > WRITTEN {
            self.flush()?;
        }
        let offset = self.stored.saturating_add(self.unwritten.len() as u64);
        self.unwritten.extend_from_slice(bytes);
        Ok(offset)
    }

    /// Move all bytes to the store.  Only those are read.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if !self.unwritten.is_empty() {
            self.store
                .seek(SeekFrom::Start(self.stored))
                .map_err(failed)?;
            self.store.write_all(&self.unwritten).map_err(failed)?;
            self.stored = self.stored.saturating_add(self.unwritten.len() as u64);
            self.unwritten = Vec::new();
        }
        Ok(())
    }

    /// Append `length` bytes at `offset`, which were flushed, to `bytes`.
    pub(crate) fn read(&mut self, offset: u64, length: usize, bytes: &mut Vec<u8>) -> Result<()> {
        if self.window_at(offset, length).is_none() {
            self.store.seek(SeekFrom::Start(offset)).map_err(failed)?;
            let rest = usize::try_from(self.stored.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.begin = offset;
            self.window.resize(length.max(READ.min(rest)), 0);
            if let Err(error) = self.store.read_exact(&mut self.window) {
                self.window.clear();
                return Err(failed(error));
            }
        }
        bytes.extend_from_slice(self.window_at(offset, length).unwrap_or_default());
        Ok(())
    }

    /// Return bytes of the window; `None` if they are outside it.
    fn window_at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let begin = usize::try_from(offset.checked_sub(self.begin)?).ok()?;
        self.window.get(begin..begin.checked_add(length)?)
    }
}

/// Convert an error of the store; what the error wraps, such as an exception of Python, is kept.
pub(crate) fn failed(error: io::Error) -> Error {
    let kind = error.kind();
    let inner = error.into_inner();
    Error::Lent(inner.unwrap_or_else(|| Box::new(io::Error::from(kind))))
}
