//! Reads small files of a commit for one response (FORMAT.md, "Bundles").
//!
//! A file that the commit does not name is not looked for.  The others are opened below the root
//! without following a symlink, and are as the commit states before and after they are read.

use std::os::fd::AsFd;

use huai_format::content::bundle::Head;
use huai_format::entries::{Body, Entry, Leaves};
use huai_format::limits::BUNDLED_BYTES;
use huai_format::path::{RelPath, parent, split};
use huai_format::snapshots::{Lookup, ObjectReader};
use huai_git::error as format;
use huai_git::find::split_before;
use huai_sys::attributes::time_of;
use huai_sys::call::{self, Outcome, Status};
use huai_sys::error::{Errno, Error, Result, is_shortage};
use huai_sys::handle::{LastDirectory, Root};
use huai_sys::regular::{is_absence, open_as_seen};
use huai_sys::stop::Stop;

/// The files of one response.
#[derive(Debug)]
pub struct BundleReader<R> {
    lookup: Lookup<R>,
    root: Root,
    /// The requested paths, each ended by NUL.
    paths: Vec<u8>,
    /// The position of the next one.
    next: usize,
    /// The bytes that the response may still have.
    left: usize,
}

/// A file of the commit.
struct Committed {
    size: u32,
    mtime: i64,
}

impl<R: ObjectReader> BundleReader<R> {
    /// Read the files at `paths`, each ended by NUL, below the directory `root`, until the response
    /// has about `most` bytes.
    pub fn new(lookup: Lookup<R>, root: &[u8], paths: Vec<u8>, most: usize) -> Result<Self> {
        Ok(Self {
            lookup,
            root: Root::open(root)?,
            paths,
            next: 0,
            left: most,
        })
    }

    /// Return the next part of the response, of at least `enough` bytes unless it is the last; empty at the end.
    /// Fails with `Stopped` after a stop.  Each path has one record, in order; a path without its NUL ends the
    /// response.
    pub fn read(&mut self, enough: usize, stop: &Stop) -> format::Result<Vec<u8>> {
        let enough = enough.min(self.left);
        let mut part = Vec::with_capacity(enough + BUNDLED_BYTES as usize);
        let mut last = LastDirectory::default();
        while part.len() < enough {
            let (path, rest) = split_before(self.paths.get(self.next..).unwrap_or_default(), 0);
            if rest.is_empty() {
                break; // a path without its NUL is not complete
            }
            if stop.is_set() {
                return Err(format::Error::Stopped);
            }
            self.next += path.len() + 1;
            match find(&mut self.lookup, path)? {
                Err(head) => head.encode(&mut part),
                Ok(committed) => append(&self.root, path, &committed, &mut last, &mut part)
                    .map_err(|error| format::Error::Lent(Box::new(error)))?,
            }
        }
        self.left = self.left.saturating_sub(part.len());
        Ok(part)
    }
}

/// Return size and mtime of the committed file at a path, or the head that says that it is missing or too large.
fn find<R: ObjectReader>(
    lookup: &mut Lookup<R>,
    path: &[u8],
) -> format::Result<std::result::Result<Committed, Head>> {
    let Ok(path) = RelPath::parse(path) else {
        return Ok(Err(Head::Missing));
    };
    let leaf = if path.is_root() {
        None
    } else {
        lookup.leaf(&path)?
    };
    let Some((line, digest)) = leaf else {
        return Ok(Err(Head::Missing));
    };
    let directory = RelPath::trusted(parent(path.as_bytes()).to_vec());
    let entry = Leaves::new(&directory, &line, &digest).next().transpose()?;
    Ok(match entry {
        Some(Entry {
            mtime,
            body: Body::File { size, .. },
            ..
        }) => match u32::try_from(size) {
            Ok(size) if size <= BUNDLED_BYTES => Ok(Committed { size, mtime }),
            _ => Err(Head::Large),
        },
        _ => Err(Head::Missing),
    })
}

/// Append the record of one file to `part`; without content if the file cannot be read as it was committed.  Only a
/// shortage is an error.
fn append<'a>(
    root: &Root,
    path: &'a [u8],
    committed: &Committed,
    last: &mut LastDirectory<'a>,
    part: &mut Vec<u8>,
) -> Result<()> {
    let (above, name) = split(path);
    let begin = part.len();
    let read = last.open(root, above).and_then(|directory| {
        let status = call::status_at(directory, name)?;
        let opened = open_as_seen(directory, name, &status)?;
        let Some((file, _)) = opened.filter(|(_, status)| is_as_committed(status, committed))
        else {
            return Ok(false);
        };
        let head = Head::File {
            size: committed.size,
            mtime: committed.mtime,
        };
        head.encode(part);
        let content = part.len();
        part.resize(content + committed.size as usize, 0);
        call::read_all_at(file.as_fd(), 0, &mut part[content..])?;
        Ok(is_as_committed(&call::status(file.as_fd())?, committed))
    });
    if read != Ok(true) {
        part.truncate(begin);
        failure(read)
            .map_err(|errno| Error::new("open", path, errno))?
            .encode(part);
    }
    Ok(())
}

fn is_as_committed(status: &Status, committed: &Committed) -> bool {
    (status.size, status.mtime) == (committed.size.into(), time_of(committed.mtime))
}

/// Return the head for a file that is not sent, or the error of a shortage.
fn failure(read: Outcome<bool>) -> Outcome<Head> {
    match read {
        Err(errno) if is_shortage(errno) => Err(errno),
        Err(errno) if !is_absence(errno) && errno != Errno::NXIO => Ok(Head::Unreadable),
        _ => Ok(Head::Changed),
    }
}
