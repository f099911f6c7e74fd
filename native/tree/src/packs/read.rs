//! Reads the packs of a repository by offset; files are never mapped.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use huai_git::error::{Error as FormatError, Result as Parsed};
use huai_git::index::{Index, IndexEntry};
use huai_git::object::{Kind, Object, PackedForm, put_header};
use huai_git::oid::Oid;
use huai_git::read::{PackReader, Packed};
use huai_git::tree::{TreeItem, encode_tree};
use huai_git::window::Source;
use huai_sys::call;
use huai_sys::error::{Errno, Error, Result};

use super::recent::Recent;

const DIRECTORY_BYTES: usize = 32 << 10;

/// A file that is read by offset.  Its size is that when it was opened.
#[derive(Debug)]
pub struct PackFile {
    handle: OwnedFd,
    path: Vec<u8>,
    size: u64,
}

impl PackFile {
    /// Open the file at `path`, in a private folder.
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

    /// Read the whole file.
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

/// The largest index in bytes that is read as a whole, and checked.
const SMALL_INDEX: u64 = 256 << 10;

/// The bytes of an index; a small one is held in memory, so that the pack of each commit keeps no
/// file open.
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

/// Open an index; a small one is read as a whole, and checked.
fn open_index(path: &[u8]) -> Parsed<Index<IndexBytes>> {
    let file = PackFile::open(path).map_err(boxed)?;
    if file.size() > SMALL_INDEX {
        return Index::open(IndexBytes::Open(file));
    }
    let index = Index::open(IndexBytes::Held(file.read_whole()?))?;
    index.check()?;
    Ok(index)
}

/// Ids, with the records of their objects.
pub type Chain = Vec<(Oid, Vec<u8>)>;

/// The most consecutive deltas that are copied: longer chains make the result slow to read.
const COPIED_DEPTH: usize = 8;

/// A pack with its open index; the pack file itself is opened on demand.
struct Pack {
    /// The path without a suffix.
    path: Vec<u8>,
    index: Index<IndexBytes>,
    reader: Option<PackReader<PackFile>>,
}

impl Pack {
    /// Open the index of the pack at `path`, given without a suffix; the pack stays closed.
    fn open(path: Vec<u8>) -> Parsed<Self> {
        let index = open_index(&[&path, &b".idx"[..]].concat());
        let index = index.map_err(|error| error.within(path.escape_ascii()))?;
        Ok(Self {
            path,
            index,
            reader: None,
        })
    }

    fn find(&mut self, oid: &Oid) -> Parsed<Option<IndexEntry>> {
        let entry = self.index.find(oid);
        entry.map_err(|error| error.within(self.path.escape_ascii()))
    }

    fn read(&mut self, entry: &IndexEntry, spare: &mut u64) -> Parsed<Object> {
        opened(&mut self.reader, &self.path)?.read(entry, &mut self.index, spare)
    }

    fn packed(&mut self, entry: &IndexEntry) -> Parsed<Packed> {
        opened(&mut self.reader, &self.path)?.packed(entry, &mut self.index)
    }
}

/// Return a record of a pack; a delta names its base.
fn record_of(packed: &Packed) -> Vec<u8> {
    let mut record = Vec::new();
    put_header(packed.form, packed.size as u64, &mut record);
    record.extend_from_slice(&packed.data);
    record
}

/// Return the reader of the pack at `path`, opening the pack if `reader` is `None`.
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

/// The manifest of an empty directory.
const EMPTY_MANIFEST: &[u8] = b"./\t0\n";

/// The packs of one or several folders.
///
/// Folders are listed again when an object is in none of the known packs, so that new packs
/// are found; `forget` is for packs that were removed or rewritten.
pub struct Packs {
    folders: Vec<Vec<u8>>,
    /// The packs; the one with the last object comes first.
    opened: Vec<Pack>,
    recent: Recent,
    /// The work that reads may still cost beyond their worth.
    spare: u64,
    /// An empty directory for the tree of each absent one, and its manifest.
    absent: HashMap<Oid, Arc<Object>>,
    /// The trees of absent directories that packs were made without.
    pub left_out: BTreeSet<Oid>,
}

impl Packs {
    /// Begin without folders.  `keep` bytes of objects are cached; all reads may
    /// cost `spare` bytes of work beyond their worth, `u64::MAX` for trusted packs.
    pub fn new(keep: usize, spare: u64) -> Self {
        Self {
            folders: Vec::new(),
            opened: Vec::new(),
            recent: Recent::new(keep),
            spare,
            absent: HashMap::new(),
            left_out: BTreeSet::new(),
        }
    }

    /// Add a folder; its packs are listed when an object is not found.
    pub fn add(&mut self, folder: Vec<u8>) {
        self.folders.push(folder);
    }

    /// Take the directories with these trees for empty ones where no pack has them; replaces earlier ones.
    pub fn set_absent(&mut self, trees: impl Iterator<Item = Oid>) {
        let oid = Oid::of_own(Kind::Blob, EMPTY_MANIFEST);
        let is_tree = false;
        let content = encode_tree(vec![TreeItem {
            name: b"m",
            oid,
            is_tree,
        }]);
        let kind = Kind::Tree;
        let directory = Arc::new(Object { kind, content });
        let kind = Kind::Blob;
        let content = EMPTY_MANIFEST.to_vec();
        let manifest = Arc::new(Object { kind, content });
        self.absent = trees.map(|tree| (tree, Arc::clone(&directory))).collect();
        if !self.absent.is_empty() {
            self.absent.insert(oid, manifest);
        }
    }

    /// Return true if an object is absent: no pack has it, and something stands for it.
    pub fn is_absent(&mut self, oid: &Oid) -> Parsed<bool> {
        Ok(self.absent.contains_key(oid) && self.locate(oid)?.is_none())
    }

    /// Forget all packs, which closes them, and all cached objects; the folders stay.
    pub fn forget(&mut self) {
        self.opened.clear();
        self.recent.clear();
    }

    /// Return an object, or what stands for it, as `fetched` does.
    pub fn find(&mut self, oid: &Oid) -> Parsed<Option<Arc<Object>>> {
        let object = self.fetched(oid)?;
        Ok(object.or_else(|| self.absent.get(oid).cloned()))
    }

    /// Return an object, and cache a small one; `None` if no pack has it.
    pub fn fetched(&mut self, oid: &Oid) -> Parsed<Option<Arc<Object>>> {
        if let Some(object) = self.recent.get(oid) {
            return Ok(Some(object));
        }
        let entry = self.locate(oid)?;
        let (Some(entry), Some(pack)) = (entry, self.opened.first_mut()) else {
            return Ok(None);
        };
        let object = Arc::new(pack.read(&entry, &mut self.spare)?);
        self.recent.keep(*oid, &object);
        Ok(Some(object))
    }

    /// Return an object, or only its first `size` bytes, unchecked; `None` if no pack has it.
    pub fn head(&mut self, oid: &Oid, size: usize) -> Parsed<Option<Arc<Object>>> {
        if let Some(object) = self.recent.get(oid) {
            return Ok(Some(object));
        }
        let entry = self.locate(oid)?;
        if let (Some(entry), Some(pack)) = (entry, self.opened.first_mut()) {
            let reader = opened(&mut pack.reader, &pack.path)?;
            if let Some(object) = reader.head(&entry, size)? {
                return Ok(Some(Arc::new(object)));
            }
        }
        self.find(oid)
    }

    /// Return an object in its packed form; `None` if no pack has it.
    pub fn packed(&mut self, oid: &Oid) -> Parsed<Option<Packed>> {
        let entry = self.locate(oid)?;
        let (Some(entry), Some(pack)) = (entry, self.opened.first_mut()) else {
            return Ok(None);
        };
        pack.packed(&entry).map(Some)
    }

    /// Return an object, then its bases, the whole one last, each as in its pack, all of one pack.  `None` if the
    /// object is missing, or its chain leaves the pack or is too long to be copied; an unreadable pack is an error.
    pub fn chain(&mut self, oid: &Oid) -> Parsed<Option<Chain>> {
        let Some(mut entry) = self.locate(oid)? else {
            return Ok(None);
        };
        let mut chain = Vec::new();
        // All from one pack: an object of another one may be based on one in this chain.
        while let Some(pack) = self.opened.first_mut() {
            let packed = pack.packed(&entry)?;
            chain.push((entry.oid, record_of(&packed)));
            let PackedForm::From(base) = packed.form else {
                return Ok(Some(chain));
            };
            match pack.find(&base)? {
                Some(found) if chain.len() <= COPIED_DEPTH => entry = found,
                _ => break,
            }
        }
        Ok(None)
    }

    /// Return the path of the pack that has `oid`; `None` if no pack has it, or that pack has `other` as well.
    pub(crate) fn pack_without(&mut self, oid: &Oid, other: &Oid) -> Parsed<Option<Vec<u8>>> {
        if self.locate(oid)?.is_none() {
            return Ok(None);
        }
        let Some(pack) = self.opened.first_mut() else {
            return Ok(None);
        };
        Ok(pack.find(other)?.is_none().then(|| pack.path.clone()))
    }

    /// Return true if an object is in the known pack at this path.
    pub(crate) fn is_in(&mut self, path: &[u8], oid: &Oid) -> Parsed<bool> {
        let pack = self.opened.iter_mut().find(|pack| pack.path == path);
        pack.map_or(Ok(false), |pack| Ok(pack.find(oid)?.is_some()))
    }

    /// Return the entry of an object, listing the folders if needed; `None` if no pack has it.  The pack becomes the first, open.
    pub fn locate(&mut self, oid: &Oid) -> Parsed<Option<IndexEntry>> {
        let mut listed = false;
        loop {
            if let Some(entry) = self.find_in_known(oid)? {
                match self.open_first() {
                    Ok(()) => return Ok(Some(entry)),
                    // Maintenance removed it; another pack may have its objects.
                    Err(FormatError::Lent(error)) if is_missing(error.as_ref()) => {
                        self.opened.swap_remove(0);
                    }
                    Err(error) => return Err(error),
                }
            } else if listed || !self.add_new_packs()? {
                return Ok(None);
            } else {
                listed = true;
            }
        }
    }

    /// Open the pack file of the first pack, unless it is open.
    fn open_first(&mut self) -> Parsed<()> {
        if let Some(pack) = self.opened.first_mut() {
            opened(&mut pack.reader, &pack.path)?;
        }
        Ok(())
    }

    /// Return true if no pack is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.opened.is_empty()
    }

    /// Open all packs that are in `folder` now; an index without a pack is ignored.
    pub(crate) fn open_all(folder: &[u8]) -> Parsed<Self> {
        let mut packs = Self::new(0, u64::MAX);
        packs.add(folder.to_vec());
        packs.add_new_packs()?;
        for mut pack in std::mem::take(&mut packs.opened) {
            match opened(&mut pack.reader, &pack.path) {
                Ok(_) => packs.opened.push(pack),
                Err(FormatError::Lent(error)) if is_missing(error.as_ref()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(packs)
    }

    /// Return the entry of an object in a known pack, which becomes the first; `None` if none has
    /// it.
    pub(crate) fn find_in_known(&mut self, oid: &Oid) -> Parsed<Option<IndexEntry>> {
        for number in 0..self.opened.len() {
            let entry = self.opened.get_mut(number).map(|pack| pack.find(oid));
            if let Some(entry) = entry.transpose()?.flatten() {
                self.opened.swap(0, number);
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// List the folders, and add new packs; returns true if there are any.
    fn add_new_packs(&mut self) -> Parsed<bool> {
        let before = self.opened.len();
        for folder in &self.folders {
            for name in names(folder).map_err(boxed)? {
                let path = [folder, &b"/"[..], &name].concat();
                if self.opened.iter().any(|pack| pack.path == path) {
                    continue;
                }
                match Pack::open(path) {
                    Ok(pack) => self.opened.push(pack),
                    // It was removed since its folder was read.
                    Err(FormatError::Lent(error)) if is_missing(error.as_ref()) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(self.opened.len() > before)
    }
}

/// Return the names of the packs of a folder that have an index, without suffixes and in any order; empty if the
/// folder is missing.
fn names(folder: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    let mut packs = HashSet::new();
    let mut room = Vec::with_capacity(DIRECTORY_BYTES);
    let listed = call::open_root(folder).and_then(|handle| {
        call::read_names(handle.as_fd(), room.spare_capacity_mut(), |name, _| {
            let name = name.to_bytes();
            names.extend(name.strip_suffix(b".idx").map(<[u8]>::to_vec));
            packs.extend(name.strip_suffix(b".pack").map(<[u8]>::to_vec));
            Ok(())
        })
    });
    match listed {
        Ok(()) | Err(Errno::NOENT) => {
            // An index without a pack is ignored.
            names.retain(|name| packs.contains(name));
            Ok(names)
        }
        Err(errno) => Err(Error::new("read", folder, errno)),
    }
}

/// Return true if an error means that a file is missing.
fn is_missing(error: &(dyn std::error::Error + 'static)) -> bool {
    let error = error.downcast_ref::<Error>();
    error.is_some_and(|error| error.errno == Errno::NOENT)
}

fn unreadable(path: &[u8], errno: Errno) -> FormatError {
    boxed(Error::new("read", path, errno))
}

pub(super) fn boxed(error: Error) -> FormatError {
    FormatError::Lent(Box::new(error))
}

#[cfg(test)]
mod tests {
    use huai_format::snapshots::ObjectWriter;
    use huai_git::object::Kind;

    use super::*;
    use crate::packs::writer::PackWriter;
    use crate::temporary::Folder;

    #[test]
    fn a_head_is_the_beginning_of_an_object() {
        let folder = Folder::new();
        let mut writer = PackWriter::open(folder.path(), folder.path(), b"temporary", 1).unwrap();
        let content: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        let long = writer.write(Kind::Blob, &content).unwrap();
        let short = writer.write(Kind::Blob, b"content").unwrap();
        writer.finish().unwrap();
        let mut packs = Packs::new(1 << 20, u64::MAX);
        packs.add(folder.path().to_vec());
        let mut head = |oid| packs.head(oid, 2048).unwrap().unwrap().content.clone();
        assert_eq!(head(&long), content[..2048]);
        assert_eq!(head(&short), b"content");
        assert_eq!(packs.find(&long).unwrap().unwrap().content, content);
    }

    #[test]
    fn an_index_without_its_pack_is_passed_over() {
        let folder = Folder::new();
        let mut writer = PackWriter::open(folder.path(), folder.path(), b"temporary", 1).unwrap();
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
        let mut writer = PackWriter::open(folder.path(), folder.path(), b"temporary", 1).unwrap();
        let oid = writer.write(Kind::Blob, b"content").unwrap();
        let name = writer.finish().unwrap().unwrap();
        let path = [folder.path(), b"/", &name].concat();
        let index = [&path, &b".idx"[..]].concat();
        let index = PackFile::open(&index).unwrap().read_whole().unwrap();
        folder.write("pack-gone.idx", &index);
        let missing_pack = [folder.path(), b"/pack-gone"].concat();
        let mut packs = Packs::new(0, u64::MAX);
        packs.add(folder.path().to_vec());
        packs.opened.push(Pack::open(missing_pack).unwrap());
        assert!(packs.locate(&oid).unwrap().is_some());
        assert_eq!(packs.opened.len(), 1);
    }
}
