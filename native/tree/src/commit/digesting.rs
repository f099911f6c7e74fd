//! Computes the digests of scanned files: known ones are looked up, other files are hashed
//! soon after their scan, while their inodes are still in memory.

use std::collections::{HashMap, HashSet};

use huai_format::content::block_index::BlockIndex;
use huai_format::entries::{Body, Digest, Leaves};
use huai_format::path::{RelPath, parent};
use huai_format::snapshots::{Lookup, ObjectReader};
use huai_sys::call::Outcome;
use huai_sys::error::{Errno, Error, is_shortage};
use huai_sys::stop::Stop;

use super::failure::{Failure, Result};
use crate::digests::{self, DigestTable, Doubt};
use crate::hashing::contents::{Contents, HashOutcome, HashRequest};
use crate::scan::directory::{Directory, Reason};

/// The policy of hashing.
pub struct Policy<'a> {
    /// True if unknown digests are not computed now.
    pub later: bool,
    /// Path, size, mtime and digest of damage that a scrub found: this is not new content.
    pub damage: HashSet<(Vec<u8>, u64, i64, Digest)>,
    /// True if a file may change while it is read: then it gets no digest, which is not a problem.
    pub is_volatile: &'a (dyn Fn(&[u8]) -> Outcome<bool> + Sync),
    /// The size in bytes from which a file gets a block index.
    pub large: u64,
    /// Stores a block index.
    pub keep: &'a (dyn Fn(BlockIndex) -> Outcome<()> + Sync),
}

/// A reader of files for their digests, with counts.
pub struct Digesting<'a> {
    contents: &'a Contents,
    policy: &'a Policy<'a>,
    /// The content read so far.
    pub read: Read,
}

/// The amount of content that was read.
#[derive(Debug, Default)]
pub struct Read {
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The files with more holes than may be hashed: they get no digest.
    pub holes: Vec<Vec<u8>>,
}

/// The digest of a file, or the reason why its scanned state is not committed; without a reason it
/// is committed without a digest.
type DigestOutcome = std::result::Result<digests::HashedFile, Option<Reason>>;

struct File<'a> {
    path: Vec<u8>,
    identity: &'a [u8],
    if_born: Option<(i64, Digest)>,
}

impl<'a> Digesting<'a> {
    /// Hash files with `contents`.
    pub fn new(contents: &'a Contents, policy: &'a Policy<'a>) -> Self {
        Self {
            contents,
            policy,
            read: Read::default(),
        }
    }

    /// Set the digest columns of directories.  Returns the files whose scanned state must not be committed, as
    /// positions of directory and file, with the reasons.  With `Policy::later`, only files that may keep a former
    /// digest are read.  Known digests are not computed again.  Fails with `Stopped` after a stop.
    pub(super) fn fill<R: ObjectReader>(
        &mut self,
        directories: &mut [&mut Directory],
        table: &mut impl DigestTable,
        mut past: Option<&mut Lookup<R>>,
        stop: &Stop,
    ) -> Result<Vec<((usize, usize), Reason)>> {
        let scanned: Vec<&Directory> = directories.iter().map(|each| &**each).collect();
        let doubts = table.look_up(&scanned).map_err(Failure::Digests)?;
        let mut first: HashMap<&[u8], usize> = HashMap::new();
        let mut files: Vec<File<'_>> = Vec::new();
        let mut numbers = Vec::with_capacity(doubts.len());
        for Doubt {
            place: (number, file),
            if_born,
        } in &doubts
        {
            let directory = scanned[*number];
            let identity = directory.identity(*file);
            // Several names of one file are hashed once.
            numbers.push(*first.entry(identity).or_insert_with(|| {
                files.push(File {
                    path: directory.path_of(*file),
                    identity,
                    if_born: *if_born,
                });
                files.len() - 1
            }));
        }
        let mut answers: Vec<Option<DigestOutcome>> = vec![None; files.len()];
        if self.policy.later {
            for (file, answer) in files.iter().zip(&mut answers) {
                if !file.may_keep_digest(past.as_deref_mut())? {
                    *answer = Some(Err(None));
                }
            }
        }
        self.read(&files, &mut answers, stop)?;
        let answers: Vec<_> = numbers.into_iter().map(|it| answers[it]).collect();
        let known_digests: Vec<_> = answers
            .iter()
            .map(|answer| answer.and_then(DigestOutcome::ok))
            .collect();
        let columns = table.settle(&known_digests).map_err(Failure::Digests)?;
        for (directory, column) in directories.iter_mut().zip(columns) {
            directory.digests = column;
        }
        let problems = doubts
            .iter()
            .zip(answers)
            .filter_map(|(doubt, answer)| match answer {
                Some(Err(Some(reason))) => Some((doubt.place, reason)),
                _ => None,
            });
        Ok(problems.collect())
    }

    /// Hash the files that have no answer yet; large ones come after all small ones, one by one by all threads, and
    /// their block indices are stored.  Fails with `Stopped` after a stop, with the answers so far.
    fn read(
        &mut self,
        files: &[File<'_>],
        answers: &mut [Option<DigestOutcome>],
        stop: &Stop,
    ) -> Result<()> {
        let is_pending = |(number, _): &(usize, &File<'_>)| answers[*number].is_none();
        let pending_files = files.iter().enumerate().filter(is_pending);
        let (large, small): (Vec<_>, Vec<_>) =
            pending_files.partition(|(_, file)| file.size() >= self.policy.large);
        let all: Vec<_> = small.iter().map(|(_, file)| file.request()).collect();
        let outcomes = self.contents.hash_files(&all, stop);
        for ((number, file), outcomes) in small.into_iter().zip(outcomes) {
            answers[number] = Some(self.judge(file, outcomes)?);
        }
        for (number, file) in large {
            let (outcomes, index) = self.contents.hash_large(&file.request(), stop);
            if stop.is_set() {
                break;
            }
            if let Some(index) = index.filter(|_| matches!(outcomes, HashOutcome::Read(..))) {
                (self.policy.keep)(index).map_err(|_| Failure::Stopped)?;
            }
            answers[number] = Some(self.judge(file, outcomes)?);
        }
        if stop.is_set() {
            return Err(Failure::Stopped);
        }
        Ok(())
    }

    /// Turn the outcome of hashing a file into a digest or a reason, and count what was read.  A changed volatile file
    /// has neither; a shortage ends the commit.
    fn judge(&mut self, file: &File<'_>, found: HashOutcome) -> Result<DigestOutcome> {
        Ok(match found {
            HashOutcome::Confirmed => file
                .if_born
                .map(|(birth, it)| (Some(birth), it))
                .ok_or(None),
            HashOutcome::Read(birth, digest) => {
                self.read.files += 1;
                self.read.bytes += file.size();
                if self.is_damage(file, digest) {
                    return Ok(Err(Some(Reason::Damaged)));
                }
                Ok((birth, digest))
            }
            HashOutcome::Changed => {
                let is_volatile = (self.policy.is_volatile)(&file.path);
                let is_volatile = is_volatile.map_err(|_| Failure::Stopped)?;
                Err((!is_volatile).then_some(Reason::Changed))
            }
            HashOutcome::Failed(Errno::CANCELED) => Err(None),
            HashOutcome::Failed(Errno::FBIG) => {
                self.read.holes.push(file.path.clone());
                Err(None)
            }
            HashOutcome::Failed(errno) if is_shortage(errno) => {
                return Err(Failure::Contents(Error::new("open", b"", errno)));
            }
            HashOutcome::Failed(errno) => Err(Some(Reason::Errno(errno))),
        })
    }

    /// Return true if a scrub found this content of the file damaged.
    fn is_damage(&self, file: &File<'_>, digest: Digest) -> bool {
        let damage = &self.policy.damage;
        let key = || (file.path.clone(), file.size(), file.mtime(), digest);
        !damage.is_empty() && damage.contains(&key())
    }
}

impl File<'_> {
    fn request(&self) -> HashRequest<'_> {
        HashRequest {
            path: &self.path,
            identity: self.identity,
            if_born: self.if_born,
        }
    }

    /// Return the eight bytes at an offset of the file's record; zeros if it is shorter.
    fn number(&self, at: usize) -> [u8; 8] {
        let bytes = self
            .identity
            .get(at..)
            .and_then(|bytes| bytes.first_chunk());
        bytes.copied().unwrap_or_default()
    }

    fn size(&self) -> u64 {
        u64::from_le_bytes(self.number(16))
    }

    fn mtime(&self) -> i64 {
        i64::from_le_bytes(self.number(24))
    }

    /// True if the file may keep a digest of the last commit, found in a table or, for the same size and mtime, in `past`.
    fn may_keep_digest<R: ObjectReader>(&self, past: Option<&mut Lookup<R>>) -> Result<bool> {
        if self.if_born.is_some() {
            return Ok(true);
        }
        let Some(past) = past else { return Ok(false) };
        let path = RelPath::trusted(self.path.clone());
        let Some((line, digest)) = past.leaf(&path)? else {
            return Ok(false);
        };
        let directory = RelPath::trusted(parent(&self.path).to_vec());
        let entry = Leaves::new(&directory, &line, &digest).next().transpose()?;
        Ok(entry.is_some_and(|entry| {
            let same_time = entry.mtime == self.mtime();
            matches!(entry.body, Body::File { size, digest: Some(_), .. } if size == self.size())
                && same_time
        }))
    }
}
