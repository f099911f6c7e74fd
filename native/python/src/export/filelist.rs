//! Snapshots as the text that other programs read.

use huai_export::filelist::Exported;
use huai_export::filelist::fedora::{self, Rows};
use huai_export::filelist::ls::{self, Directories};
use huai_format::path::RelPath;
use huai_format::snapshots::{EntryLimit, Snapshot, Walk};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::packs::lent::{Reader, snapshot};
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// Bytes of text that are passed at a time.
const PART: usize = 256 << 10;

/// A snapshot that is walked: where its objects are, its root's tree, how many entries it may have.
type Lent<'py> = (Py<PyAny>, Bound<'py, PyBytes>, u64);
/// Paths of files that are left out, and the seconds that their directories show.
type Own = (Vec<Vec<u8>>, i64);

fn open_walk((lent, tree, limit): Lent<'_>) -> PyResult<(Snapshot<Reader>, Walk)> {
    let snapshot = snapshot(lent, tree.as_bytes())?;
    let walk = Walk::new(&snapshot, EntryLimit::new(limit));
    Ok((snapshot, walk))
}

fn exported((files, time): Own) -> Exported {
    Exported::new(files.into_iter().map(RelPath::trusted).collect(), time)
}

/// A file list of Fedora's mirrors.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct FileList(Guarded<(Snapshot<Reader>, Walk, fedora::FileList)>);

#[pymethods]
impl FileList {
    #[new]
    fn new(lent: Lent<'_>, own: Own, endings: Option<Vec<Vec<u8>>>) -> PyResult<Self> {
        let (snapshot, walk) = open_walk(lent)?;
        let rows = endings.map_or(Rows::Times, Rows::Names);
        let list = fedora::FileList::new(rows, exported(own));
        Ok(Self(Guarded::new((snapshot, walk, list))))
    }

    fn part<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut open = self.0.try_lock()?;
        let (snapshot, walk, list) = &mut *open;
        let mut out = Vec::new();
        while out.len() < PART {
            let Some(listing) = walk.next(snapshot).map_err(refuse)? else {
                break;
            };
            list.put_listing(&listing, &mut out).map_err(refuse)?;
        }
        Ok((!out.is_empty()).then(|| PyBytes::new(py, &out)))
    }

    #[getter]
    fn left_out(&self) -> PyResult<u64> {
        let open = self.0.try_lock()?;
        Ok(open.2.left_out())
    }
}

/// The output of `ls -lR`.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Ls(Guarded<(Snapshot<Reader>, Walk, ls::Ls)>);

#[pymethods]
impl Ls {
    #[new]
    fn new(lent: Lent<'_>, own: Own) -> PyResult<Self> {
        let limit = lent.2;
        let (snapshot, mut walk) = open_walk(lent)?;
        let mut directories = Directories::default();
        while let Some(listing) = walk.next(&snapshot).map_err(refuse)? {
            directories.gather(&listing).map_err(refuse)?;
        }
        let walk = Walk::new(&snapshot, EntryLimit::new(limit));
        let text = ls::Ls::new(directories, exported(own));
        Ok(Self(Guarded::new((snapshot, walk, text))))
    }

    fn part<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut open = self.0.try_lock()?;
        let (snapshot, walk, text) = &mut *open;
        let mut out = Vec::new();
        while out.len() < PART {
            let Some(listing) = walk.next(snapshot).map_err(refuse)? else {
                break;
            };
            text.put_listing(&listing, &mut out).map_err(refuse)?;
        }
        Ok((!out.is_empty()).then(|| PyBytes::new(py, &out)))
    }
}
