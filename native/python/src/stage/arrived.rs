//! Verified files; and which of the files that are wanted equal each other.

use huai_tree::hashing::hash::Digest;
use huai_tree::stage::arrived::{self, Key};
use pyo3::prelude::*;

use crate::candidates::operations::wanted;
use crate::candidates::rows::Rows;
use crate::sys::guarded::Guarded;

/// Which run brought each file.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Arrived(Guarded<arrived::Arrived>);

#[pymethods]
impl Arrived {
    #[new]
    fn new() -> Self {
        Self(Guarded::default())
    }

    fn __len__(&self) -> usize {
        self.0.lock().len()
    }

    /// Files that `run` brought; their owner, mode and time are still to be set.
    fn add(&self, files: &Bound<'_, PyAny>, run: u32) -> PyResult<()> {
        let files = keys(files)?;
        let mut arrived = self.0.lock();
        for file in files {
            arrived.add(file, run);
        }
        Ok(())
    }

    /// These have them.
    fn finish(&self, files: &Bound<'_, PyAny>) -> PyResult<()> {
        let files = keys(files)?;
        let mut arrived = self.0.lock();
        for file in &files {
            arrived.finish(file);
        }
        Ok(())
    }

    /// The run that brought a file.
    fn run_of(&self, file: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        Ok(self.0.lock().run(&key(file)?))
    }

    /// Whether `run` brought the file at a path.
    fn has(&self, path: &[u8], run: u32) -> bool {
        self.0.lock().has(path, run)
    }

    /// The places of the files that no run brought.
    fn absent(&self, files: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let files = keys(files)?;
        let arrived = self.0.lock();
        Ok(places(&files, |file| arrived.run(file).is_none()))
    }

    /// The places of the files whose owner, mode and time are still to be set.
    fn unfinished(&self, files: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let files = keys(files)?;
        let arrived = self.0.lock();
        Ok(places(&files, |file| !arrived.is_finished(file)))
    }
}

fn places(files: &[Key], is_meant: impl Fn(&Key) -> bool) -> Vec<usize> {
    let files = files.iter().enumerate();
    let meant = files.filter(|(_, file)| is_meant(file));
    meant.map(|(place, _)| place).collect()
}

/// Of `huai_schema.entries.File`s.
fn keys(files: &Bound<'_, PyAny>) -> PyResult<Vec<Key>> {
    match files.cast::<Rows>() {
        Ok(rows) => Ok(rows.get().keys()),
        Err(_) => files.try_iter()?.map(|file| key(&file?)).collect(),
    }
}

fn key(file: &Bound<'_, PyAny>) -> PyResult<Key> {
    let file = wanted(file)?;
    Ok(Key::of(
        &file.path,
        file.size,
        file.mtime,
        file.digest.as_ref(),
    ))
}

/// Files that equal an earlier one by size and digest, with the place of that one.
#[pyfunction]
pub(crate) fn find_twins(parts: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<(usize, usize)>> {
    let mut known: Vec<(Digest, u64, usize)> = Vec::new();
    let mut before = 0;
    for part in parts {
        if let Ok(rows) = part.cast::<Rows>() {
            known.extend(rows.get().contents(before));
        } else {
            for (place, file) in (before..).zip(part.try_iter()?) {
                let file = wanted(&file?)?;
                known.extend(file.digest.map(|digest| (digest, file.size, place)));
            }
        }
        before += part.len()?;
    }
    known.retain(|(_, size, _)| *size > 0);
    known.sort_unstable();
    let mut first = None;
    let mut found = Vec::new();
    for (digest, size, place) in known {
        match first {
            Some((content, earlier)) if content == (digest, size) => found.push((place, earlier)),
            _ => first = Some(((digest, size), place)),
        }
    }
    found.sort_unstable();
    Ok(found)
}
