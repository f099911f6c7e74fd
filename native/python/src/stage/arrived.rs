//! Verified files and their places; and the wanted files that equal each other.

use std::collections::HashMap;

use huai_format::path::parent;
use huai_tree::hashing::hash::Blake3Digest;
use huai_tree::publish::Staged;
use huai_tree::stage::arrived::{self, FileKey};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::candidates::table_rows::TableRows;
use crate::sys::guarded::Guarded;

/// A directory, the places of the first file and after the last, and the run.
type DirectoryFiles<'py> = (Bound<'py, PyBytes>, usize, usize, Option<u32>);

/// The run that brought each file.
#[pyclass(frozen, name = "Arrived", module = "huai_native._native")]
pub(crate) struct ArrivedFiles(Guarded<arrived::VerifiedFiles>);

#[pymethods]
impl ArrivedFiles {
    #[new]
    fn new() -> Self {
        Self(Guarded::default())
    }

    fn __len__(&self) -> usize {
        self.0.lock().len()
    }

    /// Record that `run` fetched the files; their attributes are not set yet.
    fn add(&self, files: TableRows, run: u32) {
        let mut arrived = self.0.lock();
        for file in files.keys() {
            arrived.add(&file, run);
        }
    }

    /// Record that the attributes of the files are set; files that are not recorded are ignored.
    fn finish(&self, files: TableRows) {
        let mut arrived = self.0.lock();
        for file in files.keys() {
            arrived.finish(&file);
        }
    }

    /// Return the run that fetched each file, `None` for a file that is not recorded.
    fn runs(&self, files: TableRows) -> Vec<Option<u32>> {
        let arrived = self.0.lock();
        files.keys().map(|file| arrived.run(&file)).collect()
    }

    /// Group consecutive files of one directory and one run: returns the directory, the places of the first and after
    /// the last, and the run, `None` if they are not recorded.
    fn directories<'py>(&self, py: Python<'py>, files: TableRows) -> Vec<DirectoryFiles<'py>> {
        let arrived = self.0.lock();
        let runs = files
            .keys()
            .map(|file| (parent(file.path), arrived.run(&file)));
        let mut groups: Vec<(&[u8], usize, usize, Option<u32>)> = Vec::new();
        for (place, (directory, run)) in runs.enumerate() {
            match groups.last_mut() {
                Some(last) if (last.0, last.3) == (directory, run) => last.2 = place + 1,
                _ => groups.push((directory, place, place + 1, run)),
            }
        }
        let row = |(directory, begin, end, run)| (PyBytes::new(py, directory), begin, end, run);
        groups.into_iter().map(row).collect()
    }

    /// Return true if `run` fetched the file at `path`.
    fn has(&self, path: &[u8], run: u32) -> bool {
        self.0.lock().has(path, run)
    }

    /// Return the places of the files whose attributes are not set yet, or that are not recorded.
    fn unfinished(&self, files: TableRows) -> Vec<usize> {
        let arrived = self.0.lock();
        let files = files.keys().enumerate();
        let unfinished = files.filter(|(_, file)| !arrived.is_finished(file));
        unfinished.map(|(place, _)| place).collect()
    }
}

/// The places of verified files: below the folders of the runs that brought them, which are in one
/// open directory; or, for the numbers of files in the map, by these names in another one.
#[derive(FromPyObject)]
pub(crate) struct Places<'py>(Bound<'py, ArrivedFiles>, u32, u32, HashMap<usize, Vec<u8>>);

impl Places<'_> {
    /// Return the place of each of `files`, an exception if no run brought it.
    pub(crate) fn of(&self, files: &TableRows) -> PyResult<Vec<Staged>> {
        let Self(arrived, runs, others, names) = self;
        let arrived = arrived.get().0.lock();
        let staged = |(number, file): (usize, FileKey<'_>)| {
            if let Some(name) = names.get(&number) {
                let (folder, name) = (*others, name.clone());
                return Ok(Staged { folder, name });
            }
            let run = arrived.run(&file);
            let run = run.ok_or_else(|| PyKeyError::new_err(file.path.to_vec()))?;
            let name = [run.to_string().as_bytes(), file.path].join(&b'/');
            Ok(Staged {
                folder: *runs,
                name,
            })
        };
        files.keys().enumerate().map(staged).collect()
    }
}

/// Return the place of each file that equals an earlier one by digest and size, with that one's;
/// empty files and files without a digest are left out.
#[pyfunction]
pub(crate) fn find_twins(files: TableRows) -> Vec<(usize, usize)> {
    let mut contents: Vec<(Blake3Digest, u64, usize)> = files.contents().collect();
    contents.retain(|(_, size, _)| *size > 0);
    contents.sort_unstable();
    let mut first = None;
    let mut twins = Vec::new();
    for (digest, size, place) in contents {
        match first {
            Some((content, earlier)) if content == (digest, size) => twins.push((place, earlier)),
            _ => first = Some(((digest, size), place)),
        }
    }
    twins.sort_unstable();
    twins
}
