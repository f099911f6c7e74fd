//! Installs a pack that was received: checked, completed with the bases of its deltas, and shown.
//!
//! Order of writes: see `finish`.  The bases come behind the records that were received, and a
//! checksum of everything takes the place of the sent one.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd};

use huai_git::budget::Budget;
use huai_git::connected::check_connected;
use huai_git::crc::crc32;
use huai_git::deflate::Deflater;
use huai_git::error::{Error as FormatError, Result as Parsed};
use huai_git::index::{self, IndexEntry};
use huai_git::object::{Kind, PackedForm, commit_tree, put_header};
use huai_git::oid::{OID_BYTES, Oid};
use huai_git::resolve::{LocalObjects, Resolved, Room, WithPack, resolve};
use huai_git::window::Source;
use huai_sys::call;
use huai_sys::change;
use huai_sys::error::Error;

use super::finish::Unfinished;
use super::read::{Chain, PackFile, boxed};

/// The bytes of records that are written together.
const TOGETHER: usize = 1 << 20;

/// A repository from whose packs records are copied.
pub trait PackedObjects: LocalObjects {
    /// Return an object, then its bases, the whole one last, as records of one pack; `None` if it is missing or
    /// unreadable, or they cannot be copied.
    fn chain(&mut self, oid: &Oid) -> Option<Chain>;
}

/// A commit that a pack must hold together with the repository.
pub struct TargetCommit {
    /// The id of the commit.
    pub commit: Oid,
    /// Trees of which no object is missing.
    pub complete: Vec<Oid>,
}

/// The result of `install`.
#[derive(Debug, Default)]
pub struct Installed {
    /// The name of the pack without a suffix; `None` if it had no object, or an equal pack existed.
    pub pack: Option<Vec<u8>>,
    /// The content of the commit; empty without a target.
    pub commit: Vec<u8>,
}

/// Check the pack that was received as `name` in `folder`, append the bases of its deltas, and make
/// it visible with its index.  A pack without objects is only checked.  Without a `target` it may
/// hold any objects.
///
/// If it fails, the pack and its index may be left under their temporary names.  Fails with
/// `Missing` if the commit, an object of it or a base is missing, and if `room`, `budget` or a
/// limit is exceeded.
pub fn install(
    folder: &[u8],
    name: &[u8],
    target: Option<&TargetCommit>,
    objects: &mut impl PackedObjects,
    room: Room,
    budget: &mut Budget<'_>,
) -> Parsed<Installed> {
    let path = [folder, b"/", name].concat();
    let source = PackFile::open(&path).map_err(boxed)?;
    let pack = resolve(&source, objects, room, budget)?;
    let commit = match target {
        Some(target) => check_commit(target, &pack, objects, budget)?,
        None => Vec::new(),
    };
    if pack.is_empty() {
        return Ok(Installed { pack: None, commit });
    }
    let failed = |errno| boxed(Error::new("write a pack in", folder, errno));
    let handle = call::open_folder(folder).map_err(failed)?;
    let file = change::open_file(&path).map_err(failed)?;
    let unfinished = Unfinished {
        folder: handle.as_fd(),
        name,
        file: file.as_fd(),
    };
    let mut end = source.size() - OID_BYTES as u64;
    let mut checksum = [0; OID_BYTES];
    source.read_at(end, &mut checksum)?;
    let mut entries: Vec<_> = pack.index_entries().collect();
    if !pack.bases().is_empty() {
        // They begin in the place of the checksum, which was checked and is not needed any more.
        let bases = append_bases(&pack, objects, (file.as_fd(), &mut end), budget)?;
        entries.extend(bases);
        checksum = unfinished.seal(entries.len(), end).map_err(failed)?;
    }
    let index = index::encode(entries, &checksum)?;
    let (stem, is_new) = unfinished.publish(&checksum, &index).map_err(failed)?;
    let pack = is_new.then_some(stem);
    Ok(Installed { pack, commit })
}

/// Check that the pack and the repository hold all of a commit; returns its content.
fn check_commit(
    target: &TargetCommit,
    pack: &Resolved,
    objects: &mut impl PackedObjects,
    budget: &mut Budget<'_>,
) -> Parsed<Vec<u8>> {
    let mut objects = WithPack { pack, objects };
    let commit = objects.find(&target.commit)?;
    let commit = commit.filter(|it| it.kind == Kind::Commit);
    let tree = commit.as_ref().and_then(|it| commit_tree(&it.content));
    let (Some(commit), Some(tree)) = (commit, tree) else {
        let reason = "the commit is missing";
        return Err(FormatError::missing(reason, target.commit));
    };
    check_connected(tree, &target.complete, &mut objects, budget)?;
    Ok(commit.content)
}

/// Append the bases of deltas, and the bases of these, at `end`, so that the pack is readable by
/// itself.  Advances `end`; returns the index entries of the appended objects.
fn append_bases(
    pack: &Resolved,
    objects: &mut impl PackedObjects,
    (file, end): (BorrowedFd<'_>, &mut u64),
    budget: &Budget<'_>,
) -> Parsed<Vec<IndexEntry>> {
    let mut own = HashSet::new();
    let mut entries = Vec::new();
    let mut waiting = Vec::new();
    let mut deflater = Deflater::quick();
    for oid in pack.bases() {
        budget.check()?;
        for (oid, record) in records(oid, pack, objects, &mut deflater)? {
            if !own.insert(oid) {
                break;
            }
            let (offset, crc) = (*end + waiting.len() as u64, crc32(&record));
            entries.push(IndexEntry { oid, offset, crc });
            waiting.extend_from_slice(&record);
        }
        if waiting.len() >= TOGETHER {
            write(file, end, &mut waiting)?;
        }
    }
    write(file, end, &mut waiting)?;
    Ok(entries)
}

/// Return the records of a base and of its own bases, which are copied, in the order of `chain`.  An object of the
/// pack may be one of these: then the base is written as a whole.
fn records(
    oid: &Oid,
    pack: &Resolved,
    objects: &mut impl PackedObjects,
    deflater: &mut Deflater,
) -> Parsed<Chain> {
    let chain = objects.chain(oid);
    let copied = chain.filter(|chain| !chain.iter().any(|(base, _)| pack.contains(base)));
    if let Some(chain) = copied {
        return Ok(chain);
    }
    let missing = || FormatError::missing("a base that can no longer be read", oid);
    let object = objects.find(oid)?.ok_or_else(missing)?;
    let mut data = Vec::new();
    deflater.deflate(&object.content, &mut data)?;
    let mut record = Vec::new();
    let form = PackedForm::Whole(object.kind);
    put_header(form, object.content.len() as u64, &mut record);
    record.extend_from_slice(&data);
    Ok(vec![(*oid, record)])
}

/// Write the bytes of `waiting` at `end`; advances `end` and empties `waiting`.
fn write(file: BorrowedFd<'_>, end: &mut u64, waiting: &mut Vec<u8>) -> Parsed<()> {
    let failed = |errno| boxed(Error::new("write", b"a pack", errno));
    change::write_at(file, *end, waiting).map_err(failed)?;
    *end += waiting.len() as u64;
    waiting.clear();
    Ok(())
}
