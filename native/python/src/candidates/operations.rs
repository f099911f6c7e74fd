//! Operations of a plan, from Python's own tuples; and what became of them.

use std::collections::HashMap;

use huai_tree::candidates::survey::Numbers;
use huai_tree::hashing::hash::Digest;
use huai_tree::publish::{
    Attributes, Directory, Failure, File, Held, Leaf, Link, Mode, Move, Reason, Remove, Row,
    Staged, Symlink, Whole,
};
use huai_tree::stage::copy::Reuse;
use huai_tree::stage::verify::Wanted;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyTuple, PyType};

/// How many were done; path, reason, errno or 0, and another path, of what failed.
pub(crate) type Outcome<'py> = (
    usize,
    Option<(
        Bound<'py, PyBytes>,
        &'static str,
        i32,
        Option<Bound<'py, PyBytes>>,
    )>,
);

/// Turns entries into what the engine works with.
pub(crate) struct Entries {
    owners: Option<Owners>,
    /// The class of modes that what is there already keeps.
    kept: Py<PyType>,
}

/// Numbers of owners by name; None: unknown here.
struct Owners {
    user: Names,
    group: Names,
}

/// Those of users, or of groups.
struct Names {
    look_up: Py<PyAny>,
    known: HashMap<Vec<u8>, Option<u32>>,
}

impl Names {
    fn number(&mut self, py: Python<'_>, name: &[u8]) -> PyResult<Option<u32>> {
        if let Some(number) = self.known.get(name) {
            return Ok(*number);
        }
        let number = self.look_up.call1(py, (PyBytes::new(py, name),))?;
        let number = number.extract(py)?;
        self.known.insert(name.to_vec(), number);
        Ok(number)
    }
}

impl Entries {
    pub(crate) fn new(owners: Option<(Py<PyAny>, Py<PyAny>)>, kept: Py<PyType>) -> Self {
        let names = |look_up| Names {
            look_up,
            known: HashMap::new(),
        };
        let owners = owners.map(|(user, group)| Owners {
            user: names(user),
            group: names(group),
        });
        Self { owners, kept }
    }

    pub(crate) fn set_owners(&self) -> bool {
        self.owners.is_some()
    }

    fn attributes(&mut self, entry: &Bound<'_, PyAny>) -> PyResult<Attributes> {
        let py = entry.py();
        self.attributes_of([
            entry.getattr(intern!(py, "mtime"))?,
            entry.getattr(intern!(py, "mode"))?,
            entry.getattr(intern!(py, "owner"))?,
            entry.getattr(intern!(py, "group"))?,
        ])
    }

    /// Of a `huai_schema.entries.File`.
    pub(crate) fn attributes_of_file(&mut self, file: &Bound<'_, PyAny>) -> PyResult<Attributes> {
        let file = file.cast::<PyTuple>()?;
        let field = |number| file.get_item(number);
        self.attributes_of([field(2)?, field(3)?, field(4)?, field(5)?])
    }

    fn attributes_of(
        &mut self,
        [mtime, mode, owner, group]: [Bound<'_, PyAny>; 4],
    ) -> PyResult<Attributes> {
        let py = mode.py();
        let (user, group) = match &mut self.owners {
            None => (None, None),
            Some(owners) => (
                owners.user.number(py, owner.extract()?)?,
                owners.group.number(py, group.extract()?)?,
            ),
        };
        let is_kept =
            !mode.is_exact_instance_of::<PyInt>() && mode.is_instance(self.kept.bind(py))?;
        let bits = mode.extract()?;
        Ok(Attributes {
            user,
            group,
            mode: if is_kept {
                Mode::Kept(bits)
            } else {
                Mode::Exact(bits)
            },
            mtime: mtime.extract()?,
        })
    }

    /// Of the entry, its source as `huai_client.diff.reuse.value` has it, and a key or None.
    pub(crate) fn reuse(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Reuse> {
        let (entry, source, key): (Bound<'_, PyAny>, Bound<'_, PyTuple>, _) = item.extract()?;
        Ok(Reuse {
            wanted: wanted(&entry)?,
            attributes: self.attributes(&entry)?,
            source: source.get_item(0)?.extract()?,
            mtime: source.get_item(1)?.extract()?,
            names: source.get_item(2)?.extract()?,
            sure: source.get_item(3)?.extract()?,
            key,
        })
    }

    /// The numbers of each name: as a user, and as a group.
    pub(crate) fn numbers(&mut self, py: Python<'_>, names: &[Vec<u8>]) -> PyResult<Numbers> {
        let Some(owners) = &mut self.owners else {
            return Ok(vec![(None, None); names.len()]);
        };
        let numbers = names.iter().map(|name| {
            let user = owners.user.number(py, name)?;
            Ok((user, owners.group.number(py, name)?))
        });
        numbers.collect()
    }

    pub(crate) fn file(&mut self, entry: &Bound<'_, PyAny>) -> PyResult<File> {
        Ok(File {
            path: path(entry)?,
            attributes: self.attributes(entry)?,
        })
    }

    /// A file or symlink that is there; a file has a size.
    pub(crate) fn leaf(&mut self, entry: &Bound<'_, PyAny>) -> PyResult<Leaf> {
        let file = self.file(entry)?;
        Ok(if entry.hasattr(intern!(entry.py(), "size"))? {
            Leaf::File(file)
        } else {
            Leaf::Symlink(file)
        })
    }

    /// Of a handle, a path below it, and the entry.
    pub(crate) fn staged(&mut self, item: &Bound<'_, PyAny>) -> PyResult<(Staged, File)> {
        let (folder, name, entry): (u32, Vec<u8>, Bound<'_, PyAny>) = item.extract()?;
        Ok((Staged { folder, name }, self.file(&entry)?))
    }

    /// Of a handle, a path below it, and the path it gets.
    #[expect(clippy::unused_self, reason = "called like the others")]
    pub(crate) fn prepared(&mut self, item: &Bound<'_, PyAny>) -> PyResult<(Staged, Vec<u8>)> {
        let (folder, name, path) = item.extract()?;
        Ok((Staged { folder, name }, path))
    }

    /// Of a handle, a path below it, the path it gets, its directories, each with how many names it
    /// holds and whether it is settled, files as `prepared` that lie elsewhere, and links to make.
    pub(crate) fn whole(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Whole> {
        type Items<'py> = Vec<Bound<'py, PyAny>>;
        let (folder, name, path, directories, others, links, symlinks): (
            _,
            _,
            _,
            Items<'_>,
            Items<'_>,
            Items<'_>,
            Items<'_>,
        ) = item.extract()?;
        let mut held = Vec::with_capacity(directories.len());
        for item in directories {
            let (entry, names, settled): (Bound<'_, PyAny>, _, _) = item.extract()?;
            held.push(Held {
                directory: self.directory(&entry)?,
                names,
                settled,
            });
        }
        let others = others.iter().map(|other| self.prepared(other));
        let others = others.collect::<PyResult<_>>()?;
        let links = links.iter().map(|link| self.link(link));
        let links = links.collect::<PyResult<_>>()?;
        let symlinks = symlinks.iter().map(|symlink| self.symlink(symlink));
        Ok(Whole {
            staged: Staged { folder, name },
            path,
            directories: held,
            others,
            links,
            symlinks: symlinks.collect::<PyResult<_>>()?,
        })
    }

    pub(crate) fn link(&mut self, entry: &Bound<'_, PyAny>) -> PyResult<Link> {
        Ok(Link {
            file: self.file(entry)?,
            size: entry.getattr(intern!(entry.py(), "size"))?.extract()?,
            leader: entry.getattr(intern!(entry.py(), "link"))?.extract()?,
        })
    }

    pub(crate) fn symlink(&mut self, entry: &Bound<'_, PyAny>) -> PyResult<Symlink> {
        Ok(Symlink {
            path: path(entry)?,
            target: entry.getattr(intern!(entry.py(), "target"))?.extract()?,
            attributes: self.attributes(entry)?,
        })
    }

    pub(crate) fn directory(&mut self, entry: &Bound<'_, PyAny>) -> PyResult<Directory> {
        Ok(Directory {
            path: path(entry)?,
            attributes: Some(self.attributes(entry)?),
        })
    }

    /// Of a path, and the entry or None.
    pub(crate) fn made(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Directory> {
        let (path, entry): (Vec<u8>, Option<Bound<'_, PyAny>>) = item.extract()?;
        let attributes = entry.map(|entry| self.attributes(&entry)).transpose()?;
        Ok(Directory { path, attributes })
    }

    /// Of the old path, the new one, and a symlink or None.
    pub(crate) fn moved(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Move> {
        let (old, new, forward): (_, _, Option<Bound<'_, PyAny>>) = item.extract()?;
        let forward = forward.map(|entry| self.symlink(&entry)).transpose()?;
        Ok(Move { old, new, forward })
    }

    #[expect(clippy::unused_self, reason = "called like the others")]
    pub(crate) fn removal(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Remove> {
        let directory = item.getattr(intern!(item.py(), "directory"))?.extract()?;
        Ok(Remove {
            path: path(item)?,
            directory,
        })
    }
}

/// A `huai_schema.entries.File`.
pub(crate) fn wanted(file: &Bound<'_, PyAny>) -> PyResult<Wanted> {
    let file = file.cast::<PyTuple>()?;
    let path = file.get_item(0)?;
    let digest = file.get_item(7)?;
    let digest = digest.extract::<Option<&[u8]>>()?.map(Digest::try_from);
    Ok(Wanted {
        path: path.extract::<&[u8]>()?.to_vec(),
        size: file.get_item(1)?.extract()?,
        mtime: file.get_item(2)?.extract()?,
        mode: file.get_item(3)?.extract()?,
        digest: digest.transpose()?,
    })
}

fn path(entry: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    entry.getattr(intern!(entry.py(), "path"))?.extract()
}

/// What became of a row, for Python.
pub(crate) fn outcome(py: Python<'_>, row: Row) -> Outcome<'_> {
    let failure = row.failure.map(|Failure { path, reason }| {
        let (word, errno, other) = told(&reason);
        let other = other.map(|path| PyBytes::new(py, path));
        (PyBytes::new(py, &path), word, errno, other)
    });
    (row.done, failure)
}

/// As `_native.pyi` lists them.
fn told(reason: &Reason) -> (&'static str, i32, Option<&[u8]>) {
    match reason {
        Reason::Errno(errno) => ("errno", errno.raw_os_error(), None),
        Reason::Reserved => ("reserved", 0, None),
        Reason::NotEmpty => ("not empty", 0, None),
        Reason::NotRegular => ("not a file", 0, None),
        Reason::NotSymlink => ("not a symlink", 0, None),
        Reason::NoDirectory => ("no directory", 0, None),
        Reason::Occupied => ("occupied", 0, None),
        Reason::NoLeader => ("no leader", 0, None),
        Reason::LeaderMissing(leader) => ("leader missing", 0, Some(leader)),
        Reason::LeaderDiffers(leader) => ("leader differs", 0, Some(leader)),
        Reason::NotWhole => ("not whole", 0, None),
        Reason::NotKept(errno) => ("not kept", errno.raw_os_error(), None),
    }
}
