//! The digests of what a scan has seen: what is known is the table's to say, other files are read,
//! soon after the scan has seen them, while their inodes are still in memory.

use std::collections::{HashMap, HashSet};

use huai_format::block_index::BlockIndex;
use huai_format::entry::{Body, Digest};
use huai_format::line::Leaves;
use huai_format::lookup::Lookup;
use huai_format::objects::ObjectReader;
use huai_format::path::{RelPath, parent};

use super::failure::{Failure, Result};
use crate::digests::{self, DigestTable, Doubt};
use crate::hashing::contents::{Contents, Found, Wanted};
use crate::scan::directory::{Directory, Reason};
use crate::sys::call::Outcome;
use crate::sys::error::{Errno, Error, is_shortage};
use crate::sys::stop::Stop;

/// Which content is read, and what is made of it.
pub struct Policy<'a> {
    /// Of what no digest is known, none is computed.
    pub later: bool,
    /// Path, size, mtime and digest of damage that a scrub found: it is no new content.
    pub damage: HashSet<(Vec<u8>, u64, i64, Digest)>,
    /// True if a file may change while it is read: then it gets no digest, and is no problem.
    pub is_volatile: &'a (dyn Fn(&[u8]) -> Outcome<bool> + Sync),
    /// Bytes from which on a file gets a block index.
    pub large: u64,
    /// Keeps a block index.
    pub keep: &'a (dyn Fn(BlockIndex) -> Outcome<()> + Sync),
}

/// Reads files for their digests, and counts them.
pub struct Digesting<'a> {
    contents: &'a Contents,
    policy: &'a Policy<'a>,
    /// What was read so far.
    pub read: Read,
}

/// The content that was read.
#[derive(Debug, Default)]
pub struct Read {
    /// Files.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Files of which more is in holes than may be hashed: they get no digest.
    pub holes: Vec<Vec<u8>>,
}

/// The digest of a file; or why it is not committed as it was seen, without a reason: it is, but
/// has no digest.
type Answer = std::result::Result<digests::Found, Option<Reason>>;

struct File<'a> {
    path: Vec<u8>,
    identity: &'a [u8],
    if_born: Option<(i64, Digest)>,
}

impl<'a> Digesting<'a> {
    /// Reads by `contents`.
    pub fn new(contents: &'a Contents, policy: &'a Policy<'a>) -> Self {
        Self {
            contents,
            policy,
            read: Read::default(),
        }
    }

    /// Gives directories their digests.  Returns the files, by the numbers of directory and file,
    /// that are not committed as they were seen.  Where digests come later, those of `past` stay.
    pub(super) fn fill<R: ObjectReader>(
        &mut self,
        directories: &mut [&mut Directory],
        table: &mut impl DigestTable,
        mut past: Option<&mut Lookup<R>>,
        stop: &Stop,
    ) -> Result<Vec<((usize, usize), Reason)>> {
        let seen: Vec<&Directory> = directories.iter().map(|each| &**each).collect();
        let doubts = table.look_up(&seen).map_err(Failure::Digests)?;
        let mut first: HashMap<&[u8], usize> = HashMap::new();
        let mut files: Vec<File<'_>> = Vec::new();
        let mut numbers = Vec::with_capacity(doubts.len());
        for Doubt {
            place: (number, file),
            if_born,
        } in &doubts
        {
            let directory = seen[*number];
            let identity = directory.identity(*file);
            // Several names of one file are read by the first.
            numbers.push(*first.entry(identity).or_insert_with(|| {
                files.push(File {
                    path: directory.path_of(*file),
                    identity,
                    if_born: *if_born,
                });
                files.len() - 1
            }));
        }
        let mut answers: Vec<Option<Answer>> = vec![None; files.len()];
        if self.policy.later {
            for (file, answer) in files.iter().zip(&mut answers) {
                if !file.stays(past.as_deref_mut())? {
                    *answer = Some(Err(None));
                }
            }
        }
        self.read(&files, &mut answers, stop)?;
        let answers: Vec<_> = numbers.into_iter().map(|it| answers[it]).collect();
        let found: Vec<_> = answers
            .iter()
            .map(|answer| answer.and_then(Answer::ok))
            .collect();
        let columns = table.settle(&found).map_err(Failure::Digests)?;
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

    /// A large file is read by all threads, by itself, after all small ones.
    fn read(
        &mut self,
        files: &[File<'_>],
        answers: &mut [Option<Answer>],
        stop: &Stop,
    ) -> Result<()> {
        let wanted = |(number, _): &(usize, &File<'_>)| answers[*number].is_none();
        let wanted = files.iter().enumerate().filter(wanted);
        let (large, small): (Vec<_>, Vec<_>) =
            wanted.partition(|(_, file)| file.size() >= self.policy.large);
        let all: Vec<_> = small.iter().map(|(_, file)| file.wanted()).collect();
        let found = self.contents.find_out(&all, stop);
        for ((number, file), found) in small.into_iter().zip(found) {
            answers[number] = Some(self.judge(file, found)?);
        }
        for (number, file) in large {
            let (found, index) = self.contents.find_out_large(&file.wanted(), stop);
            if stop.is_set() {
                break;
            }
            if let Some(index) = index.filter(|_| matches!(found, Found::Read(..))) {
                (self.policy.keep)(index).map_err(|_| Failure::Stopped)?;
            }
            answers[number] = Some(self.judge(file, found)?);
        }
        if stop.is_set() {
            return Err(Failure::Stopped);
        }
        Ok(())
    }

    fn judge(&mut self, file: &File<'_>, found: Found) -> Result<Answer> {
        Ok(match found {
            Found::Confirmed => file
                .if_born
                .map(|(birth, it)| (Some(birth), it))
                .ok_or(None),
            Found::Read(birth, digest) => {
                self.read.files += 1;
                self.read.bytes += file.size();
                if self.is_damage(file, digest) {
                    return Ok(Err(Some(Reason::Damaged)));
                }
                Ok((birth, digest))
            }
            Found::Changed => {
                let is_volatile = (self.policy.is_volatile)(&file.path);
                let is_volatile = is_volatile.map_err(|_| Failure::Stopped)?;
                Err((!is_volatile).then_some(Reason::Changed))
            }
            Found::Failed(Errno::CANCELED) => Err(None),
            Found::Failed(Errno::FBIG) => {
                self.read.holes.push(file.path.clone());
                Err(None)
            }
            Found::Failed(errno) if is_shortage(errno) => {
                return Err(Failure::Contents(Error::new("open", b"", errno)));
            }
            Found::Failed(errno) => Err(Some(Reason::Errno(errno))),
        })
    }

    fn is_damage(&self, file: &File<'_>, digest: Digest) -> bool {
        let damage = &self.policy.damage;
        let found = || (file.path.clone(), file.size(), file.mtime(), digest);
        !damage.is_empty() && damage.contains(&found())
    }
}

impl File<'_> {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            path: &self.path,
            identity: self.identity,
            if_born: self.if_born,
        }
    }

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

    /// True if a digest is there to be kept; of lists it may not have been looked up.
    fn stays<R: ObjectReader>(&self, past: Option<&mut Lookup<R>>) -> Result<bool> {
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
