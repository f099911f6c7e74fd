//! The lists of other programs as commits.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};

use huai_source::entry::EntryType;
use huai_source::entry_list;
use huai_source::fedora::compare_lists;
use huai_source::recent::{self, Epoch};
use huai_source::rsync;
use huai_source::text_list;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::commit::{Counts, counts};
use crate::packs::lent::LentSnapshot;
use crate::packs::writer::Writer;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Bytes of a read that are decoded in less time than the one door to long calls takes.
const SHORT: usize = 64 << 10;

/// A binary file of Python.  Its exceptions are kept in the `io::Error`.
struct PyFile(Py<PyAny>);

impl PyFile {
    /// Call the file; an exception becomes an `io::Error` that holds it.
    fn call<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> io::Result<T> {
        Python::attach(|py| call(self.0.bind(py)).map_err(io::Error::other))
    }
}

impl Read for PyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call(|file| {
            let data = file.call_method1(intern!(file.py(), "read"), (buffer.len(),))?;
            let data = data.cast::<PyBytes>()?.as_bytes();
            let count = data.len().min(buffer.len());
            buffer[..count].copy_from_slice(&data[..count]);
            Ok(count)
        })
    }
}

impl Write for PyFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.call(|file| {
            let written = file.call_method1(
                intern!(file.py(), "write"),
                (PyBytes::new(file.py(), data),),
            )?;
            written.extract()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for PyFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (offset, whence) = match to {
            SeekFrom::Start(offset) => (i64::try_from(offset).map_err(io::Error::other)?, 0),
            SeekFrom::Current(offset) => (offset, 1),
            SeekFrom::End(offset) => (offset, 2),
        };
        self.call(|file| {
            let place = file.call_method1(intern!(file.py(), "seek"), (offset, whence))?;
            place.extract()
        })
    }
}

/// Path, type, size and mtime.
type Summary = (Vec<u8>, &'static str, u64, i64);

/// The entries of one list.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct EntryList(Guarded<Option<entry_list::EntryList<PyFile>>>);

#[pymethods]
impl EntryList {
    #[new]
    fn new(store: Py<PyAny>, limit: u64) -> Self {
        let list = entry_list::EntryList::new(PyFile(store), limit);
        Self(Guarded::new(Some(list)))
    }

    /// The number of entries that no commit can hold; 0 after the list ended.
    #[getter]
    fn skipped(&self) -> u64 {
        self.0
            .lock()
            .as_ref()
            .map_or(0, entry_list::EntryList::skipped)
    }

    /// True if a file has several names; false after the list ended.
    #[getter]
    fn has_links(&self) -> bool {
        let list = self.0.lock();
        list.as_ref().is_some_and(entry_list::EntryList::has_links)
    }

    /// Return path, type, size and mtime of all entries but the root; an exception after
    /// `write_tree`.
    fn entries(&self) -> PyResult<Vec<Summary>> {
        let mut list = self.0.lock();
        let all = list
            .as_mut()
            .ok_or_else(is_written)?
            .summaries()
            .map_err(refuse)?;
        let spelled = |kind| match kind {
            EntryType::File => "file",
            EntryType::Directory => "directory",
            EntryType::Symlink => "symlink",
            EntryType::Special => "special",
        };
        let rows = all.into_iter();
        Ok(rows
            .map(|(path, kind, size, mtime)| (path, spelled(kind), size, mtime))
            .collect())
    }

    /// Write the git tree of all entries, which ends the list; returns its id and the totals.
    fn write_tree(&self, py: Python<'_>, writer: Writer) -> PyResult<(Vec<u8>, Counts)> {
        let list = self.take_list()?;
        let written = wait(py, |stop| list.write_tree(&mut writer.until(stop)))?;
        let counts = counts(written.totals, written.directories);
        Ok((written.tree.as_bytes().to_vec(), counts))
    }

    /// Write the tree of `past` with these entries added or replaced, and without `removed_paths`, which ends the
    /// list.  Returns its id, and the totals of what was added and removed.
    fn amend(
        &self,
        py: Python<'_>,
        past: LentSnapshot,
        removed_paths: Vec<Vec<u8>>,
        writer: Writer,
    ) -> PyResult<(Vec<u8>, Counts, Counts)> {
        let list = self.take_list()?;
        let LentSnapshot { snapshot, limit } = past;
        let amend =
            |stop: &_| list.amend(&snapshot, limit, &removed_paths, &mut writer.until(stop));
        let amended = wait(py, amend)?;
        Ok((
            amended.tree.as_bytes().to_vec(),
            counts(amended.added, amended.added_directories),
            counts(amended.removed, amended.removed_directories),
        ))
    }
}

impl EntryList {
    /// Take the list out; an exception if it is written already.
    fn take_list(&self) -> PyResult<entry_list::EntryList<PyFile>> {
        let list = self.0.lock().take();
        list.ok_or_else(is_written)
    }
}

fn is_written() -> PyErr {
    PyRuntimeError::new_err("the tree of the list was written already")
}

/// The file list of an rsync sender.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct RsyncList {
    list: Guarded<rsync::RsyncList>,
    entries: Py<EntryList>,
}

#[pymethods]
impl RsyncList {
    #[new]
    fn new(protocol: u32, entries: Py<EntryList>) -> PyResult<Self> {
        let list = Guarded::new(rsync::RsyncList::new(protocol).map_err(refuse)?);
        Ok(Self { list, entries })
    }

    /// Decode the next bytes of the sender; returns the bytes to send to it.
    fn feed<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let feed = || {
            let mut entries = self.entries.get().0.lock();
            let entries = entries.as_mut().ok_or_else(is_written)?;
            self.list.lock().feed(data, entries).map_err(refuse)
        };
        let answer = if data.len() < SHORT {
            py.detach(feed)
        } else {
            wait(py, |_| feed())
        };
        Ok(PyBytes::new(py, &answer?))
    }

    /// True if the list is complete: the sender closes the connection.
    #[getter]
    fn is_complete(&self) -> bool {
        self.list.lock().is_complete()
    }

    /// True if the list lacks what the sender could not read.
    #[getter]
    fn is_partial(&self) -> bool {
        self.list.lock().is_partial()
    }

    /// Return the sender's messages, at most the last hundred.
    fn messages(&self) -> Vec<Vec<u8>> {
        self.list.lock().messages().map(<[u8]>::to_vec).collect()
    }
}

/// A list that a program printed, as JSON or as mtree.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct TextList {
    list: Guarded<text_list::TextList>,
    entries: Py<EntryList>,
}

#[pymethods]
impl TextList {
    #[new]
    fn new(entries: Py<EntryList>) -> Self {
        let list = Guarded::new(text_list::TextList::default());
        Self { list, entries }
    }

    /// Decode the next bytes of the list, and add the entries of complete lines to the entry list;
    /// a `FormatError` for anything else.
    fn feed(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        wait(py, |_| {
            let mut entries = self.entries.get().0.lock();
            let entries = entries.as_mut().ok_or_else(is_written)?;
            self.list.lock().feed(data, entries).map_err(refuse)
        })
    }

    /// End the list, and add the directories that it does not name; a `FormatError` if it is
    /// incomplete.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, |_| {
            let mut entries = self.entries.get().0.lock();
            let entries = entries.as_mut().ok_or_else(is_written)?;
            self.list.lock().finish(entries).map_err(refuse)
        })
    }

    /// True if a file had a digest of another kind than BLAKE3.
    #[getter]
    fn has_other_digests(&self) -> bool {
        self.list.lock().has_other_digests()
    }
}

/// New and changed paths, removed ones, and true if lines without a readable path differ.
type ListChanges = (Vec<Vec<u8>>, Vec<Vec<u8>>, bool);

/// Compare two complete lists.  Returns the sorted paths of new and changed entries, those of removed ones, and true
/// if lines without a readable path differ.
#[pyfunction]
pub(crate) fn compare_file_lists(
    py: Python<'_>,
    old: Py<PyAny>,
    new: Py<PyAny>,
) -> PyResult<ListChanges> {
    let changes = wait(py, |_| compare_lists(PyFile(old), PyFile(new)))?;
    let sorted = |paths: HashSet<Vec<u8>>| {
        let mut paths: Vec<_> = paths.into_iter().collect();
        paths.sort_unstable();
        paths
    };
    Ok((
        sorted(changes.changed),
        sorted(changes.removed),
        changes.has_unreadable,
    ))
}

/// The epoch of the newest event, true if all are there, the dirtymark, the intervals, the events.
type RecentEvents = (
    Option<String>,
    bool,
    Vec<u8>,
    Vec<Vec<u8>>,
    Vec<(Vec<u8>, bool)>,
);

/// Read a file of recent events; returns only those after `since`, none without it.  A `FormatError` if it is cut off
/// or malformed.
#[pyfunction]
pub(crate) fn read_recent(
    py: Python<'_>,
    file: Py<PyAny>,
    since: Option<&str>,
) -> PyResult<RecentEvents> {
    let since = since.map(Epoch::parse).transpose().map_err(refuse)?;
    let file = wait(py, |_| recent::read_recent(PyFile(file), since))?;
    Ok((
        file.newest.map(|epoch| epoch.to_string()),
        file.is_complete,
        file.dirtymark,
        file.intervals,
        file.events,
    ))
}
