//! The packs of a repository, read by place; nothing is ever mapped.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use huai_format::error::{Error as FormatError, Result as Parsed};
use huai_format::git::deflate::Deflater;
use huai_format::git::index::{Index, Place};
use huai_format::git::object::{Made, Object, put_header};
use huai_format::git::oid::Oid;
use huai_format::git::read::{PackReader, Packed};
use huai_format::git::window::Source;

use super::recent::Recent;
use crate::sys::call;
use crate::sys::error::{Errno, Error, Result};

const DIRECTORY_BYTES: usize = 32 << 10;

/// A file that is read by place.  It keeps the size it had when it was opened.
#[derive(Debug)]
pub struct PackFile {
    handle: OwnedFd,
    path: Vec<u8>,
    size: u64,
}

impl PackFile {
    /// Opens the file at `path`, in a folder of our own.
    pub fn open(path: &[u8]) -> Result<Self> {
        let failed = |errno| Error::new("open", path, errno);
        let handle = call::open_file(path).map_err(failed)?;
        let size = call::status(handle.as_fd()).map_err(failed)?.size;
        Ok(Self {
            handle,
            path: path.to_vec(),
            size,
        })
    }

    fn read_whole(&self) -> Parsed<Vec<u8>> {
        let mut bytes = Vec::new();
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        bytes
            .try_reserve_exact(size)
            .map_err(|_| unreadable(&self.path, Errno::NOMEM))?;
        bytes.resize(size, 0);
        self.read_at(0, &mut bytes)?;
        Ok(bytes)
    }
}

impl Source for PackFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, room: &mut [u8]) -> Parsed<()> {
        call::read_all_at(self.handle.as_fd(), offset, room)
            .map_err(|errno| unreadable(&self.path, errno))
    }
}

/// Indices of at most this size are read as a whole, and checked.
const SMALL_INDEX: u64 = 256 << 10;

/// The bytes of an index: those of a small one are held, so that no file stays open for the pack of
/// each commit.
#[derive(Debug)]
enum IndexBytes {
    Held(Vec<u8>),
    Open(PackFile),
}

impl Source for IndexBytes {
    fn size(&self) -> u64 {
        match self {
            Self::Held(bytes) => bytes.as_slice().size(),
            Self::Open(file) => file.size(),
        }
    }

    fn read_at(&self, offset: u64, room: &mut [u8]) -> Parsed<()> {
        match self {
            Self::Held(bytes) => bytes.as_slice().read_at(offset, room),
            Self::Open(file) => file.read_at(offset, room),
        }
    }
}

fn open_index(path: &[u8]) -> Parsed<Index<IndexBytes>> {
    let file = PackFile::open(path).map_err(boxed)?;
    if file.size() > SMALL_INDEX {
        return Index::open(IndexBytes::Open(file));
    }
    let index = Index::open(IndexBytes::Held(file.read_whole()?))?;
    index.check()?;
    Ok(index)
}

/// Ids, and the records of their objects.
pub type Chain = Vec<(Oid, Vec<u8>)>;

/// Deltas in a row that are copied: more make whatever is made from them slow to read.
const COPIED_DEPTH: usize = 8;

/// A pack with its index; it is opened when it is first read.
struct Pack {
    /// Without a suffix.
    path: Vec<u8>,
    index: Index<IndexBytes>,
    reader: Option<PackReader<PackFile>>,
}

impl Pack {
    fn open(path: Vec<u8>) -> Parsed<Self> {
        let index = open_index(&[&path, &b".idx"[..]].concat());
        let index = index.map_err(|error| error.within(path.escape_ascii()))?;
        Ok(Self {
            path,
            index,
            reader: None,
        })
    }

    fn find(&mut self, oid: &Oid) -> Parsed<Option<Place>> {
        let place = self.index.find(oid);
        place.map_err(|error| error.within(self.path.escape_ascii()))
    }

    fn read(&mut self, place: &Place, spare: &mut u64) -> Parsed<Object> {
        opened(&mut self.reader, &self.path)?.read(place, &mut self.index, spare)
    }

    fn packed(&mut self, place: &Place) -> Parsed<Packed> {
        opened(&mut self.reader, &self.path)?.packed(place, &mut self.index)
    }
}

/// A record of a pack, a delta by the name of its base.
fn record_of(packed: &Packed) -> Vec<u8> {
    let mut record = Vec::new();
    put_header(packed.made, packed.size as u64, &mut record);
    record.extend_from_slice(&packed.data);
    record
}

fn opened<'a>(
    reader: &'a mut Option<PackReader<PackFile>>,
    path: &[u8],
) -> Parsed<&'a mut PackReader<PackFile>> {
    match reader {
        Some(reader) => Ok(reader),
        closed => {
            let file = PackFile::open(&[path, &b".pack"[..]].concat()).map_err(boxed)?;
            Ok(closed.insert(PackReader::new(file)))
        }
    }
}

/// The packs of one or several folders.
///
/// They are listed when something is asked for that is in none of those known, so that what comes
/// later is found; `forget` is for what went, or has another content now.
pub struct Packs {
    folders: Vec<Vec<u8>>,
    /// The one that had the last object comes first.
    opened: Vec<Pack>,
    recent: Recent,
    /// Work that reads may still cost beyond what they are worth.
    spare: u64,
    deflater: Option<Deflater>,
}

impl Packs {
    /// Make one of no folder.  `keep` bytes of objects that were read are kept; all reads may
    /// cost `spare` bytes of work beyond what they are worth: `u64::MAX` for packs of one's own.
    pub fn new(keep: usize, spare: u64) -> Self {
        Self {
            folders: Vec::new(),
            opened: Vec::new(),
            recent: Recent::new(keep),
            spare,
            deflater: None,
        }
    }

    /// Read what is in `folder` as well.
    pub fn add(&mut self, folder: Vec<u8>) {
        self.folders.push(folder);
    }

    /// Know no pack any more.
    pub fn forget(&mut self) {
        self.opened.clear();
        self.recent.clear();
    }

    /// An object, if it is here.
    pub fn find(&mut self, oid: &Oid) -> Parsed<Option<Arc<Object>>> {
        if let Some(found) = self.recent.get(oid) {
            return Ok(Some(found));
        }
        let place = self.locate(oid)?;
        let (Some(place), Some(pack)) = (place, self.opened.first_mut()) else {
            return Ok(None);
        };
        let found = Arc::new(pack.read(&place, &mut self.spare)?);
        self.recent.keep(*oid, &found);
        Ok(Some(found))
    }

    /// An object as it lies in its pack, if it is here.
    pub fn packed(&mut self, oid: &Oid) -> Parsed<Option<Packed>> {
        let place = self.locate(oid)?;
        let (Some(place), Some(pack)) = (place, self.opened.first_mut()) else {
            return Ok(None);
        };
        pack.packed(&place).map(Some)
    }

    /// An object as a whole one lies in a pack, if it is here: copied, or made if it lies there as
    /// a delta.
    pub fn record(&mut self, oid: &Oid) -> Parsed<Option<Vec<u8>>> {
        let Some(mut packed) = self.packed(oid)? else {
            return Ok(None);
        };
        if matches!(packed.made, Made::From(_)) {
            let Some(found) = self.find(oid)? else {
                return Ok(None);
            };
            let deflater = self.deflater.get_or_insert_with(Deflater::quick);
            deflater.deflate(&found.content, &mut packed.data)?;
            packed.made = Made::Whole(found.kind);
            packed.size = found.content.len();
        }
        Ok(Some(record_of(&packed)))
    }

    /// An object and what it is made from, each as it lies in a pack, the whole one last, if it is
    /// here.  Alone, as `record` has it, if that would be a long way.
    pub fn chain(&mut self, oid: &Oid) -> Parsed<Option<Chain>> {
        let Some(mut place) = self.locate(oid)? else {
            return Ok(None);
        };
        let mut chain = Vec::new();
        // All of one pack: what lies in another may be made from what is in this chain.
        while let Some(pack) = self.opened.first_mut() {
            let packed = pack.packed(&place)?;
            chain.push((place.oid, record_of(&packed)));
            let Made::From(base) = packed.made else {
                return Ok(Some(chain));
            };
            match pack.find(&base)? {
                Some(found) if chain.len() <= COPIED_DEPTH => place = found,
                _ => break,
            }
        }
        let record = self.record(oid)?;
        Ok(record.map(|record| vec![(*oid, record)]))
    }

    /// The path of the pack that has an object, unless it has another one as well.
    pub(crate) fn pack_without(&mut self, oid: &Oid, other: &Oid) -> Parsed<Option<Vec<u8>>> {
        if self.locate(oid)?.is_none() {
            return Ok(None);
        }
        let Some(pack) = self.opened.first_mut() else {
            return Ok(None);
        };
        Ok(pack.find(other)?.is_none().then(|| pack.path.clone()))
    }

    /// Whether an object is in the pack of this path.
    pub(crate) fn is_in(&mut self, path: &[u8], oid: &Oid) -> Parsed<bool> {
        let pack = self.opened.iter_mut().find(|pack| pack.path == path);
        pack.map_or(Ok(false), |pack| Ok(pack.find(oid)?.is_some()))
    }

    /// Where an object stands, if it is here; its pack comes first then, and is open.
    pub fn locate(&mut self, oid: &Oid) -> Parsed<Option<Place>> {
        let mut listed = false;
        loop {
            if let Some(place) = self.known(oid)? {
                match self.open_first() {
                    Ok(()) => return Ok(Some(place)),
                    // Maintenance removed it; another pack may have what was in it.
                    Err(FormatError::Lent(error)) if is_missing(error.as_ref()) => {
                        self.opened.swap_remove(0);
                    }
                    Err(error) => return Err(error),
                }
            } else if listed || !self.list()? {
                return Ok(None);
            } else {
                listed = true;
            }
        }
    }

    fn open_first(&mut self) -> Parsed<()> {
        if let Some(pack) = self.opened.first_mut() {
            opened(&mut pack.reader, &pack.path)?;
        }
        Ok(())
    }

    /// The packs that are there now, and no others; an index alone holds nothing.
    pub(crate) fn now(folder: &[u8]) -> Parsed<Self> {
        let mut packs = Self::new(0, u64::MAX);
        packs.add(folder.to_vec());
        packs.list()?;
        for mut pack in std::mem::take(&mut packs.opened) {
            match opened(&mut pack.reader, &pack.path) {
                Ok(_) => packs.opened.push(pack),
                Err(FormatError::Lent(error)) if is_missing(error.as_ref()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(packs)
    }

    /// Where an object stands in a pack that is known; its pack comes first then.
    pub(crate) fn known(&mut self, oid: &Oid) -> Parsed<Option<Place>> {
        for number in 0..self.opened.len() {
            let found = self.opened.get_mut(number).map(|pack| pack.find(oid));
            if let Some(place) = found.transpose()?.flatten() {
                self.opened.swap(0, number);
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Look for packs that are not known yet; whether there are any.
    fn list(&mut self) -> Parsed<bool> {
        let before = self.opened.len();
        for folder in &self.folders {
            for name in names(folder).map_err(boxed)? {
                let path = [folder, &b"/"[..], &name].concat();
                if self.opened.iter().any(|pack| pack.path == path) {
                    continue;
                }
                match Pack::open(path) {
                    Ok(pack) => self.opened.push(pack),
                    // It went since its folder was read.
                    Err(FormatError::Lent(error)) if is_missing(error.as_ref()) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(self.opened.len() > before)
    }
}

/// The packs of a folder that are complete, without their suffix; none if there is no folder.
fn names(folder: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut packs = HashSet::new();
    let mut room = Vec::with_capacity(DIRECTORY_BYTES);
    let listed = call::open_root(folder).and_then(|handle| {
        call::read_names(handle.as_fd(), room.spare_capacity_mut(), |name, _| {
            let name = name.to_bytes();
            found.extend(name.strip_suffix(b".idx").map(<[u8]>::to_vec));
            packs.extend(name.strip_suffix(b".pack").map(<[u8]>::to_vec));
            Ok(())
        })
    });
    match listed {
        Ok(()) | Err(Errno::NOENT) => {
            // An index alone holds nothing.
            found.retain(|name| packs.contains(name));
            Ok(found)
        }
        Err(errno) => Err(Error::new("read", folder, errno)),
    }
}

/// Whether what failed is that there is no such file.
fn is_missing(error: &(dyn std::error::Error + 'static)) -> bool {
    let error = error.downcast_ref::<Error>();
    error.is_some_and(|error| error.errno == Errno::NOENT)
}

fn unreadable(path: &[u8], errno: Errno) -> FormatError {
    boxed(Error::new("read", path, errno))
}

fn boxed(error: Error) -> FormatError {
    FormatError::Lent(Box::new(error))
}

#[cfg(test)]
mod tests {
    use huai_format::git::object::Kind;
    use huai_format::objects::ObjectWriter;

    use super::*;
    use crate::packs::writer::PackWriter;
    use crate::temporary::Folder;

    #[test]
    fn an_index_without_its_pack_is_passed_over() {
        let folder = Folder::new();
        let mut writer = PackWriter::open(folder.path(), b"temporary", 1).unwrap();
        let oid = writer.write(Kind::Blob, b"content").unwrap();
        let name = writer.finish().unwrap().unwrap();
        let index = [folder.path(), b"/", &name, b".idx"].concat();
        let index = PackFile::open(&index).unwrap().read_whole().unwrap();
        for stray in ["pack-a.idx", "pack-z.idx"] {
            folder.write(stray, &index);
        }
        let mut packs = Packs::new(0, u64::MAX);
        packs.add(folder.path().to_vec());
        assert_eq!(packs.find(&oid).unwrap().unwrap().content, b"content");
        assert_eq!(packs.opened.len(), 1);
    }

    #[test]
    fn a_pack_that_went_after_its_listing_is_passed_over() {
        let folder = Folder::new();
        let mut writer = PackWriter::open(folder.path(), b"temporary", 1).unwrap();
        let oid = writer.write(Kind::Blob, b"content").unwrap();
        let name = writer.finish().unwrap().unwrap();
        let path = [folder.path(), b"/", &name].concat();
        let index = [&path, &b".idx"[..]].concat();
        let index = PackFile::open(&index).unwrap().read_whole().unwrap();
        folder.write("pack-gone.idx", &index);
        let gone = [folder.path(), b"/pack-gone"].concat();
        let mut packs = Packs::new(0, u64::MAX);
        packs.add(folder.path().to_vec());
        packs.opened.push(Pack::open(gone).unwrap());
        assert!(packs.locate(&oid).unwrap().is_some());
        assert_eq!(packs.opened.len(), 1);
    }
}
