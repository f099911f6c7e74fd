//! Entries and candidates, from Python's tuples into the engine's table and back.

use std::collections::HashSet;
use std::sync::Arc;

use huai_plan::candidates::{Attribute, AttributeSet};
use huai_plan::candidates::{
    Candidates, EntryKind, LocalState, LocalStatus, Row, Span, Stated, StatedMode, TableFull,
};
use huai_sys::error::Errno;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFrozenSet, PyInt, PyTuple, PyType};

use crate::sys::errors::lacking;

/// The number of fields of a directory's tuple (`huai_schema.entries`); symlinks have one more,
/// files more.
const DIRECTORY_FIELDS: usize = 5;
const SYMLINK_FIELDS: usize = 6;

/// The attributes with their names in Python, in the order of `Attribute`.
const ATTRIBUTES: [(&str, Attribute); 8] = [
    ("type", Attribute::Type),
    ("size", Attribute::Size),
    ("mtime", Attribute::Mtime),
    ("mode", Attribute::Mode),
    ("owner", Attribute::Owner),
    ("group", Attribute::Group),
    ("target", Attribute::Target),
    ("link", Attribute::Link),
];

/// A path, its wanted entry, its past entries.
pub(crate) type PathFields<'py> = (
    Vec<u8>,
    Option<Bound<'py, PyTuple>>,
    Vec<Bound<'py, PyTuple>>,
);

/// The Python classes of the values that rows become, and functions that return the names of users
/// and groups by number, if any.
pub(crate) struct Types {
    pub(crate) candidate: Py<PyType>,
    pub(crate) file: Py<PyType>,
    pub(crate) directory: Py<PyType>,
    pub(crate) symlink: Py<PyType>,
    pub(crate) remove: Py<PyType>,
    pub(crate) reduced: Py<PyType>,
    pub(crate) kept: Py<PyType>,
    pub(crate) names: Option<(Py<PyAny>, Py<PyAny>)>,
}

/// Make the `OSError` (`ENOMEM`) for a table that has no room for more.
pub(crate) fn full(_: TableFull) -> PyErr {
    Python::attach(|py| lacking(py, Errno::NOMEM))
}

/// Convert an entry's tuple, whose length tells its type, and add its texts and owners to the
/// table; texts that equal those of `known` are shared.  A field of a wrong type is an exception.
pub(crate) fn stated(
    table: &mut Candidates,
    entry: &Bound<'_, PyTuple>,
    known: Option<&Stated>,
) -> PyResult<Stated> {
    let field = |number: usize| entry.get_item(number);
    let (kind, before) = match entry.len() {
        DIRECTORY_FIELDS => (EntryKind::Directory, 1),
        SYMLINK_FIELDS => (EntryKind::Symlink, 2),
        _ => (EntryKind::File, 2),
    };
    let (mut size, mut other, mut digest) = (0, Span::default(), Span::default());
    let mut put = |bytes: &[u8], known: Option<Span>| {
        let span = table.add_text_once(bytes, [known, None]);
        span.map_err(full)
    };
    match kind {
        EntryKind::Directory => {}
        EntryKind::Symlink => {
            let target = field(1)?;
            other = put(target.extract()?, known.map(|each| each.other))?;
        }
        EntryKind::File => {
            size = field(1)?.extract()?;
            let (link, content) = (field(6)?, field(7)?);
            if let Some(link) = link.extract::<Option<&[u8]>>()? {
                other = put(link, known.map(|each| each.other))?;
            }
            if let Some(content) = content.extract::<Option<&[u8]>>()? {
                digest = put(content, known.map(|each| each.digest))?;
            }
        }
    }
    let (owner, group) = (field(before + 2)?, field(before + 3)?);
    Ok(Stated {
        kind,
        mode: mode(&field(before + 1)?)?,
        owner: table.owner(owner.extract()?),
        group: table.owner(group.extract()?),
        mtime: field(before)?.extract()?,
        size,
        other,
        digest,
    })
}

/// Convert a mode: a plain number, one with `stated` (`Reduced`), or any other subclass (`Kept`).
fn mode(mode: &Bound<'_, PyAny>) -> PyResult<StatedMode> {
    let bits = mode.extract()?;
    let is_plain = mode.is_exact_instance_of::<PyInt>();
    let stated = if is_plain {
        None
    } else {
        mode.getattr_opt(intern!(mode.py(), "stated"))?
    };
    Ok(StatedMode {
        bits,
        kept: !is_plain && stated.is_none(),
        stated: stated.map_or(Ok(bits), |stated| stated.extract())?,
    })
}

/// Add a row for a `Candidate`, all of whose fields are known; an exception for an unknown
/// attribute.
pub(crate) fn push(table: &mut Candidates, candidate: &Bound<'_, PyTuple>) -> PyResult<()> {
    type Fields<'py> = (
        Vec<u8>,
        Option<Bound<'py, PyTuple>>,
        Option<Bound<'py, PyTuple>>,
        Vec<Bound<'py, PyTuple>>,
        bool,
        HashSet<String>,
        u32,
        Option<Vec<u8>>,
        (u64, u64),
    );
    let fields: Fields<'_> = candidate.extract()?;
    let (path, have, wanted, past, special, differing, links, digest, inode) = fields;
    let state = match have {
        Some(have) => {
            let have = stated(table, &have, None)?;
            local_state(&have, links, inode)
        }
        None if special => LocalState::Something {
            seen: LocalStatus {
                links,
                device: inode.0,
                inode: inode.1,
                ..LocalStatus::default()
            },
            target: Span::default(),
            named: true,
        },
        None => LocalState::Nothing,
    };
    push_path(table, (path, wanted, past), state)?;
    let digest = table.add_text(&digest.unwrap_or_default());
    let digest = digest.map_err(full)?;
    let mut attributes = AttributeSet::default();
    for name in differing {
        let listed = ATTRIBUTES.iter().find(|(each, _)| *each == name);
        let (_, attribute) = listed.ok_or_else(|| PyValueError::new_err(name))?;
        attributes.add_if(*attribute, true);
    }
    if let Some(row) = table.rows_mut().last_mut() {
        row.differing = attributes;
        row.digest = digest;
    }
    Ok(())
}

/// Return the local state of an entry that Python describes; it has the names of its owners.
fn local_state(have: &Stated, links: u32, (device, inode): (u64, u64)) -> LocalState {
    LocalState::Something {
        seen: LocalStatus {
            kind: Some(have.kind),
            mode: have.mode.bits,
            links,
            user: have.owner,
            group: have.group,
            size: have.size,
            mtime: have.mtime,
            device,
            inode,
        },
        target: have.other,
        named: true,
    }
}

/// Add a row for a path, its wanted entry and its past entries.
pub(crate) fn push_path(
    table: &mut Candidates,
    (path, wanted, past): PathFields<'_>,
    state: LocalState,
) -> PyResult<()> {
    let entry = wanted
        .map(|wanted| stated(table, &wanted, None))
        .transpose()?;
    let past = past.iter().map(|each| stated(table, each, entry.as_ref()));
    let past = past.collect::<PyResult<Vec<_>>>()?;
    let path = table.add_text(&path).map_err(full)?;
    table.push(path, entry, &past, state);
    Ok(())
}

/// A converter of rows to Python's values.
#[derive(Clone)]
pub(crate) struct RowConverter {
    pub(crate) table: Arc<Candidates>,
    pub(crate) types: Arc<Types>,
}

impl RowConverter {
    /// Convert a row to a `Candidate`; `special` is true for a local entry of another type.
    pub(crate) fn candidate<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        let table = &self.table;
        let path = PyBytes::new(py, table.path(row));
        let past = table
            .past(row)
            .iter()
            .map(|each| self.entry(py, &path, each));
        let past = PyTuple::new(py, past.collect::<PyResult<Vec<_>>>()?)?;
        let wanted_entry = row.wanted.map(|wanted| self.entry(py, &path, &wanted));
        let have = self.local_entry(py, &path, row)?;
        let (links, inode) = match table.local(row) {
            LocalState::Something { seen, .. } => (seen.links, (seen.device, seen.inode)),
            LocalState::Unknown | LocalState::Nothing => (1, (0, 0)),
        };
        let special = matches!(table.local(row), LocalState::Something { .. }) && have.is_none();
        let digest = self.bytes(py, row.digest);
        let differing = differing(py, row.differing)?;
        self.types.candidate.bind(py).call1((
            path,
            have,
            wanted_entry.transpose()?,
            past,
            special,
            differing,
            links,
            digest,
            inode,
        ))
    }

    /// Convert a text of the table; `None` if it is empty.
    fn bytes<'py>(&self, py: Python<'py>, span: Span) -> Option<Bound<'py, PyBytes>> {
        (!span.is_empty()).then(|| PyBytes::new(py, self.table.bytes(span)))
    }

    /// Return the name of an owner by its position in the table; empty beyond the last.
    fn owner_name<'py>(&self, py: Python<'py>, position: u32) -> Bound<'py, PyBytes> {
        let name = self.table.owners().get(position as usize);
        PyBytes::new(py, name.map_or(b"", Vec::as_slice))
    }

    /// Convert the wanted entry of a row; Python's `None` if its path is to be free.
    pub(crate) fn wanted_entry<'py>(
        &self,
        py: Python<'py>,
        row: &Row,
    ) -> PyResult<Bound<'py, PyAny>> {
        let path = PyBytes::new(py, self.table.path(row));
        match &row.wanted {
            Some(wanted) => self.entry(py, &path, wanted),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// Convert a wanted or past entry at `path`: to a `File`, `Directory` or `Symlink`.
    fn entry<'py>(
        &self,
        py: Python<'py>,
        path: &Bound<'py, PyBytes>,
        entry: &Stated,
    ) -> PyResult<Bound<'py, PyAny>> {
        let types = &self.types;
        let (owner, group) = (
            self.owner_name(py, entry.owner),
            self.owner_name(py, entry.group),
        );
        let mode = entry.mode;
        let bits = mode.bits.into_pyobject(py)?;
        let mode = if mode.kept {
            types.kept.bind(py).call1((bits,))?
        } else if mode.stated != mode.bits {
            let of = types.reduced.bind(py);
            of.call_method1(intern!(py, "of"), (bits, mode.stated))?
        } else {
            bits.into_any()
        };
        let mtime = entry.mtime;
        let other = self.bytes(py, entry.other);
        match entry.kind {
            EntryKind::File => {
                let digest = self.bytes(py, entry.digest);
                let fields = (path, entry.size, mtime, mode, owner, group, other, digest);
                types.file.bind(py).call1(fields)
            }
            EntryKind::Directory => {
                let fields = (path, mtime, mode, owner, group);
                types.directory.bind(py).call1(fields)
            }
            EntryKind::Symlink => {
                let target = PyBytes::new(py, self.table.bytes(entry.other));
                let fields = (path, target, mtime, mode, owner, group);
                types.symlink.bind(py).call1(fields)
            }
        }
    }

    /// Convert the local entry of a row; `None` if it has none, or one of another type than file, directory or
    /// symlink.  It has neither link nor digest; owners have the names that the functions of `types` return.
    fn local_entry<'py>(
        &self,
        py: Python<'py>,
        path: &Bound<'py, PyBytes>,
        row: &Row,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let LocalState::Something {
            seen,
            target,
            named,
        } = *self.table.local(row)
        else {
            return Ok(None);
        };
        let Some(kind) = seen.kind else {
            return Ok(None);
        };
        let types = &self.types;
        let (owner, group) = match (&types.names, named) {
            (Some((user, group)), false) => (
                user.bind(py).call1((seen.user,))?,
                group.bind(py).call1((seen.group,))?,
            ),
            _ => (
                self.owner_name(py, seen.user).into_any(),
                self.owner_name(py, seen.group).into_any(),
            ),
        };
        let (mtime, mode) = (seen.mtime, seen.mode);
        let have = match kind {
            EntryKind::File => {
                let fields = (path, seen.size, mtime, mode, owner, group);
                types.file.bind(py).call1(fields)
            }
            EntryKind::Directory => types
                .directory
                .bind(py)
                .call1((path, mtime, mode, owner, group)),
            EntryKind::Symlink => {
                let target = PyBytes::new(py, self.table.bytes(target));
                let fields = (path, target, mtime, mode, owner, group);
                types.symlink.bind(py).call1(fields)
            }
        };
        have.map(Some)
    }
}

/// Return the names of the attributes in a set.
fn differing(py: Python<'_>, found: AttributeSet) -> PyResult<Bound<'_, PyFrozenSet>> {
    let names = ATTRIBUTES.iter().filter(|(_, each)| found.has(*each));
    PyFrozenSet::new(py, names.map(|(name, _)| *name))
}
