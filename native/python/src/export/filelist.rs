//! Snapshots as the text that other programs read.

use huai_export::filelist::Exported;
use huai_export::filelist::fedora::{self, Rows};
use huai_export::filelist::ls::{self, Directories};
use huai_format::path::RelPath;
use huai_format::snapshots::{Snapshot, Walk};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::packs::lent::{LentSnapshot, Reader};
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// Bytes of text that are passed at a time.
const PART: usize = 256 << 10;

/// Paths of files that are left out, and the seconds that their directories show.
type Own = (Vec<Vec<u8>>, i64);

/// `ls-lR`, `times`, or Fedora's list of the paths with one of these endings, or of all.
#[derive(FromPyObject)]
enum Style {
    Named(String),
    Names(Vec<Vec<u8>>),
}

/// A formatter of the text, from directories in tree order.
enum Text {
    Fedora(fedora::FileList),
    Ls(ls::Ls),
}

/// A list of all entries as text.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct FileList(Guarded<(Snapshot<Reader>, Walk, Text)>);

#[pymethods]
impl FileList {
    #[new]
    /// Begin the text; `ls-lR` reads the whole snapshot once before.
    fn new(lent: LentSnapshot, own: Own, style: Style) -> PyResult<Self> {
        let (files, time) = own;
        let exported = Exported::new(files.into_iter().map(RelPath::trusted).collect(), time);
        let text = match style {
            Style::Names(endings) => {
                Text::Fedora(fedora::FileList::new(Rows::Names(endings), exported))
            }
            Style::Named(name) if name == "times" => {
                Text::Fedora(fedora::FileList::new(Rows::Times, exported))
            }
            Style::Named(_) => {
                let (mut walk, mut directories) = (lent.walk(), Directories::default());
                while let Some(listing) = walk.next(&lent.snapshot).map_err(refuse)? {
                    directories.gather(&listing).map_err(refuse)?;
                }
                Text::Ls(ls::Ls::new(directories, exported))
            }
        };
        let walk = lent.walk();
        Ok(Self(Guarded::new((lent.snapshot, walk, text))))
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Return the next piece of about `PART` bytes; `None` at the end.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut open = self.0.try_lock()?;
        let (snapshot, walk, text) = &mut *open;
        let mut out = Vec::new();
        while out.len() < PART {
            let Some(listing) = walk.next(snapshot).map_err(refuse)? else {
                break;
            };
            let put = match text {
                Text::Fedora(list) => list.put_listing(&listing, &mut out),
                Text::Ls(text) => text.put_listing(&listing, &mut out),
            };
            put.map_err(refuse)?;
        }
        Ok((!out.is_empty()).then(|| PyBytes::new(py, &out)))
    }

    #[getter]
    /// The number of names so far that no line can hold; always 0 for `ls-lR`.
    fn left_out(&self) -> PyResult<u64> {
        Ok(match &self.0.try_lock()?.2 {
            Text::Fedora(list) => list.left_out(),
            Text::Ls(_) => 0,
        })
    }
}
