//! Finds entries of a snapshot by a text.

use std::collections::VecDeque;
use std::sync::Arc;

use huai_git::error::{Error, Result};
use huai_git::oid::Oid;

use super::name_index::{Directory, NameIndex, NameReader};
use super::text::SearchText;
use crate::diff::{Columns, Role, Sink};
use crate::entries::{Leaves, decode_directory};
use crate::escape::unescape;
use crate::path::{RelPath, at, is_within, join, parent, split};
use crate::snapshots::{Lookup, Manifest, ObjectReader, Piece, PieceName, Snapshot};

/// A search below a directory.
#[derive(Debug)]
pub struct Search {
    /// The directory; without it, nothing is found.
    pub below: RelPath,
    /// The text.
    pub text: SearchText,
    /// The most entries to find.
    pub most: usize,
}

/// The end of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEnd {
    /// Everything was searched.
    Complete,
    /// There are more entries than those that were found.
    Full,
    /// It was stopped.
    Stopped,
}

/// An own directory, its matching names, and its subdirectories that were not searched yet.
struct Level {
    path: RelPath,
    directory: Arc<Directory>,
    matches: VecDeque<Match>,
    child: usize,
}

/// A matching name in a piece.
struct Match {
    piece: (PieceName, Piece),
    /// The raw path from the own directory; empty for itself.
    path: Vec<u8>,
    is_directory: bool,
}

impl Search {
    /// Return the matching entries in tree order; ends early when `stopped` returns true.
    pub fn run<R: ObjectReader>(
        &self,
        index: &mut NameIndex,
        lookup: &mut Lookup<R>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(Columns, SearchEnd)> {
        let (own, tree) = lookup.own_above(&self.below)?;
        let mut entries = Columns::new(self.most);
        let mut reader = NameReader {
            index,
            snapshot: &lookup.snapshot(),
            stopped,
        };
        let end = match self.fill(&mut entries, &mut reader, own, tree) {
            Err(Error::Stopped) => SearchEnd::Stopped,
            end => end?,
        };
        Ok((entries, end))
    }

    /// Add the entries in the own directory at `own` to `entries`.
    fn fill<R: ObjectReader>(
        &self,
        entries: &mut Columns,
        reader: &mut NameReader<'_, R>,
        own: RelPath,
        tree: Oid,
    ) -> Result<SearchEnd> {
        let mut manifest = None;
        let is_above = own != self.below;
        let mut levels = vec![self.level(reader, own, tree)?];
        while let Some(level) = levels.last_mut() {
            let child = level.directory.children.get(level.child);
            // Above the directory to search below, no other own directory is searched.
            let child = child.filter(|_| !is_above);
            let is_next = |each: &Match| child.is_none_or(|(name, _)| each.top() <= &**name);
            if level.matches.front().is_some_and(is_next) {
                if entries.is_full() {
                    return Ok(SearchEnd::Full);
                }
                if let Some(next) = level.matches.pop_front() {
                    next.read(reader.snapshot, &level.path, &mut manifest, entries)?;
                }
            } else if let Some((name, tree)) = child {
                let path = level.path.try_join(name)?;
                level.child = level.child.saturating_add(1);
                let next = self.level(reader, path, *tree)?;
                levels.push(next);
            } else {
                levels.pop();
            }
        }
        Ok(SearchEnd::Complete)
    }

    /// Find the names of an own directory; one more than the most that are wanted.
    fn level<R: ObjectReader>(
        &self,
        reader: &mut NameReader<'_, R>,
        path: RelPath,
        tree: Oid,
    ) -> Result<Level> {
        let directory = reader.directory(&path, tree)?;
        let mut matches = VecDeque::new();
        let (above, own_name) = split(path.as_bytes());
        let is_match = self.text.matches(above, own_name);
        for (_, name, piece) in &directory.pieces {
            let names = reader.names(&path, *name, piece)?;
            // The first piece does not have the directory's own name.
            let may_match = is_match && name.is_none() || self.text.may_match(&names);
            if may_match && matches.len() <= self.most {
                self.find(&names, &path, |path, is_directory| {
                    matches.push_back(Match {
                        piece: (*name, *piece),
                        path,
                        is_directory,
                    });
                })?;
            }
        }
        Ok(Level {
            path,
            directory,
            matches,
            child: 0,
        })
    }

    /// Call `found` with the raw path of each matching name of a piece of the own directory `own`,
    /// and true for a directory.
    fn find(
        &self,
        names: &[u8],
        own: &RelPath,
        mut found: impl FnMut(Vec<u8>, bool),
    ) -> Result<()> {
        let mut inside = Vec::new();
        let mut directory = own.clone();
        let mut may_have = self.text.may_be_in(own.as_bytes());
        for line in names.split(|&byte| byte == b'\n') {
            let is_directory = line.last() == Some(&b'/');
            if is_directory {
                let relative = line.strip_suffix(b"/").filter(|name| *name != b".");
                inside = unescape(relative.unwrap_or_default())?.into_owned();
                directory = path_in(own, &inside)?;
                may_have = self.text.may_be_in(directory.as_bytes());
            } else if line.is_empty() || !may_have || !self.text.may_match(line) {
                continue;
            }
            let (above, name) = if is_directory {
                split(directory.as_bytes())
            } else {
                (directory.as_bytes(), &*unescape(line)?)
            };
            let is_below = is_within(directory.as_bytes(), self.below.as_bytes());
            if is_below && self.text.matches(above, name) {
                let path = if is_directory {
                    inside.clone()
                } else {
                    join(&inside, name)
                };
                found(path, is_directory);
            }
        }
        Ok(())
    }
}

impl Match {
    /// Return the first name of the path if that is a directory; a file or symlink of the own
    /// directory comes before all of them.
    fn top(&self) -> &[u8] {
        let is_below = self.is_directory || self.path.contains(&b'/');
        let path = Some(&*self.path).filter(|_| is_below).unwrap_or_default();
        path.split(|&byte| byte == b'/').next().unwrap_or_default()
    }

    /// Add the entry, of the own directory at `own`, to `entries`; `last` is the manifest that was
    /// read last.
    fn read<R: ObjectReader>(
        &self,
        snapshot: &Snapshot<R>,
        own: &RelPath,
        last: &mut Option<(Piece, Manifest)>,
        entries: &mut Columns,
    ) -> Result<()> {
        let (name, piece) = self.piece;
        let manifest = match last.take() {
            Some((last_piece, manifest)) if last_piece == piece => manifest,
            _ => snapshot.manifest(name, &piece, own)?,
        };
        let missing = || at(own, Error::new("a manifest out of order"));
        if self.is_directory {
            let block = manifest.block(&self.path).ok_or_else(missing)?;
            let path = path_in(own, &self.path)?;
            entries.push(
                Role::New,
                &path,
                &decode_directory(&path, &block.attributes)?,
            );
        } else {
            let (line, digest) = manifest.leaf(&self.path)?.ok_or_else(missing)?;
            let directory = RelPath::trusted(parent(path_in(own, &self.path)?.as_bytes()).to_vec());
            for leaf in Leaves::new(&directory, &line, &digest) {
                entries.push(Role::New, &directory, &leaf?);
            }
        }
        *last = Some((piece, manifest));
        Ok(())
    }
}

/// Return a path from its form relative to the own directory `own`.
fn path_in(own: &RelPath, path: &[u8]) -> Result<RelPath> {
    if path.is_empty() {
        return Ok(own.clone());
    }
    own.try_join(path)
}
