//! The order of publishing a tree: the stage of each path, and the rule that sets it.
//!
//! The first match decides:
//!
//! 1. rules of volatile files, which are not symlinks;
//! 2. rules that an administrator stated;
//! 3. rules of the repositories around the path, outermost first, relative to their tops;
//! 4. outside of repositories, the generic rules.
//!
//! A repository is where one was assigned, and none is searched below that.  Elsewhere it is
//! where the markers of a profile are.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

mod anywhere;
mod names;
mod patterns;

pub use names::{Marker, NameLookup};
pub use patterns::{StagePattern, first};

use anywhere::Anywhere;

use huai_format::path::parent;
use huai_format::snapshots::ObjectReader;
use huai_git::error::Result;

/// A rule of the table.
#[derive(Debug)]
pub struct StageRule {
    /// The paths that it matches.
    pub pattern: StagePattern,
    /// The stage of these paths.
    pub stage: u8,
}

/// The layout of one kind of repository.
#[derive(Debug)]
pub struct Profile {
    /// The markers of a top: all markers of one list must exist.
    pub tops: Vec<Vec<Marker>>,
    /// Its rules, by their positions in the table.
    pub rules: Range<usize>,
}

/// The rules and profiles.
#[derive(Debug)]
pub struct Table {
    /// All rules.
    pub rules: Vec<StageRule>,
    /// The positions of rules of volatile files.
    pub volatile: Range<usize>,
    /// The positions of stated rules.
    pub stated: Range<usize>,
    /// The positions of rules outside of repositories.
    pub generic: Range<usize>,
    /// The profiles, in the order in which they are tried.
    pub profiles: Vec<Profile>,
    /// The assigned tops with the numbers of their profiles; `None` rules a repository out.
    pub assigned: HashMap<Vec<u8>, Option<usize>>,
}

/// A subtree with the layout of a profile.
#[derive(Debug)]
pub struct Repository {
    /// The path of the top.
    pub top: Vec<u8>,
    /// The number of the profile.
    pub profile: usize,
    /// The number of the list of markers that was found; `None` if it was assigned.
    pub found_by: Option<usize>,
}

/// The stage of a path, and the reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placement {
    /// The stage; 0 if no rule matches.
    pub stage: u8,
    /// The position of the rule that decided.
    pub rule: Option<usize>,
    /// The repository whose rule decided, or the innermost one around the path.
    pub repository: Option<usize>,
}

/// The numbers of the repositories around a directory, outermost first.
type Around = Arc<[usize]>;

/// The stages of the paths of one snapshot.
#[derive(Debug)]
pub struct Order<R> {
    table: Table,
    /// The volatile and stated rules with a stage other than the first.
    early: Anywhere,
    /// The profile and generic rules with a stage other than the first.
    late: Anywhere,
    lookup: NameLookup<R>,
    around: HashMap<Vec<u8>, Around>,
    repositories: Vec<Repository>,
}

impl<R: ObjectReader> Order<R> {
    /// Begin without reading.
    pub fn new(table: Table, lookup: NameLookup<R>) -> Self {
        let (mut early, mut late) = (Anywhere::default(), Anywhere::default());
        let add = |range: &Range<usize>, to: &mut Anywhere| {
            let rules = table.rules.get(range.clone()).unwrap_or_default();
            let rules = rules.iter().filter(|rule| rule.stage > 0);
            rules.for_each(|rule| to.add(&rule.pattern));
        };
        add(&table.volatile, &mut early);
        add(&table.stated, &mut early);
        add(&table.generic, &mut late);
        for profile in &table.profiles {
            add(&profile.rules, &mut late);
        }
        Self {
            table,
            early,
            late,
            lookup,
            around: HashMap::new(),
            repositories: Vec::new(),
        }
    }

    /// Return the names of the snapshot.
    pub fn lookup(&mut self) -> &mut NameLookup<R> {
        &mut self.lookup
    }

    /// Return the repositories found so far.
    pub fn repositories(&self) -> &[Repository] {
        &self.repositories
    }

    /// Return the stage of a file or symlink, as in its `placement`.
    ///
    /// Searches for repositories only if one of their rules may decide.
    pub fn stage(&mut self, path: &[u8], symlink: bool) -> Result<u8> {
        if self.late.may_match(path, symlink) {
            return Ok(self.placement(path, symlink)?.stage);
        }
        if !self.early.may_match(path, symlink) {
            return Ok(0);
        }
        let rule = self.rule_anywhere(path, symlink);
        Ok(rule.map_or(0, |rule| self.stage_of(rule)))
    }

    /// Return the placement of a file or symlink: the first matching rule decides, of volatile and
    /// stated ones, then of the repositories, outermost first, or of the generic ones outside of
    /// repositories.
    pub fn placement(&mut self, path: &[u8], symlink: bool) -> Result<Placement> {
        let inside = self.around(parent(path))?;
        let innermost = inside.last().copied();
        if let Some(rule) = self.rule_anywhere(path, symlink) {
            return Ok(self.placed(rule, innermost));
        }
        for &number in &*inside {
            let decision = self.repositories.get(number).and_then(|repository| {
                let profile = self.table.profiles.get(repository.profile)?;
                self.first(&profile.rules, below(&repository.top, path), symlink)
            });
            if let Some(rule) = decision {
                return Ok(self.placed(rule, Some(number)));
            }
        }
        let generic = || self.first(&self.table.generic, path, symlink);
        Ok(match innermost.map_or_else(generic, |_| None) {
            Some(rule) => self.placed(rule, None),
            None => Placement {
                repository: innermost,
                ..Placement::default()
            },
        })
    }

    /// Return the rule that decides independently of repositories, if one does.
    fn rule_anywhere(&self, path: &[u8], symlink: bool) -> Option<usize> {
        let Table {
            volatile, stated, ..
        } = &self.table;
        let is_volatile = || self.first(volatile, path, false);
        let volatile = if symlink { None } else { is_volatile() };
        volatile.or_else(|| self.first(stated, path, symlink))
    }

    /// Return the position in the table of the first of some rules that matches; `None` without one.
    fn first(&self, rules: &Range<usize>, path: &[u8], symlink: bool) -> Option<usize> {
        let candidates = self.table.rules.get(rules.clone())?;
        let place = first(candidates.iter().map(|rule| &rule.pattern), path, symlink)?;
        rules.start.checked_add(place)
    }

    fn stage_of(&self, rule: usize) -> u8 {
        self.table.rules.get(rule).map_or(0, |rule| rule.stage)
    }

    fn placed(&self, rule: usize, repository: Option<usize>) -> Placement {
        Placement {
            stage: self.stage_of(rule),
            rule: Some(rule),
            repository,
        }
    }

    /// Return the numbers of the repositories that contain `folder`, or have their top there,
    /// outermost first; those outside of an assigned top are left out.  Searches directories that
    /// were not searched before, and keeps what is found.
    pub fn around(&mut self, folder: &[u8]) -> Result<Around> {
        let mut missing = Vec::new();
        let mut cached = None;
        let mut path = Some(folder);
        while let Some(here) = path {
            cached = self.around.get(here).cloned();
            if cached.is_some() {
                break;
            }
            missing.push(here);
            path = (!here.is_empty()).then(|| parent(here));
        }
        let mut around = cached.unwrap_or_default();
        for path in missing.into_iter().rev() {
            around = self.around_content(path, around)?;
            self.around.insert(path.to_vec(), Arc::clone(&around));
        }
        Ok(around)
    }

    /// Return the repositories around the content of `path`: `outer`, and one with its top there;
    /// an assignment there replaces `outer`, by one repository or by none.
    fn around_content(&mut self, path: &[u8], outer: Around) -> Result<Around> {
        if let Some(profile) = self.table.assigned.get(path) {
            let profile = *profile;
            return Ok(profile.map_or_else(Around::default, |profile| {
                [self.add(path, profile, None)].into()
            }));
        }
        if self.is_below_assigned(path) {
            return Ok(outer);
        }
        for profile in 0..self.table.profiles.len() {
            if let Some(top) = self.top_of(path, profile)? {
                let number = self.add(path, profile, Some(top));
                return Ok(outer.iter().copied().chain([number]).collect());
            }
        }
        Ok(outer)
    }

    /// Return true if a rule assigns a profile, or none, to a directory above `path`.
    fn is_below_assigned(&self, path: &[u8]) -> bool {
        let assigned = &self.table.assigned;
        let mut current = path;
        while !assigned.is_empty() && !current.is_empty() {
            current = parent(current);
            if assigned.contains_key(current) {
                return true;
            }
        }
        false
    }

    /// Return the number of the first list of markers by which `path` is a top of a profile; `None` if it is not.
    fn top_of(&mut self, path: &[u8], profile: usize) -> Result<Option<usize>> {
        let Self { table, lookup, .. } = self;
        let tops = table.profiles.get(profile).map(|profile| &profile.tops);
        'tops: for (number, markers) in tops.into_iter().flatten().enumerate() {
            for marker in markers {
                if !lookup.has_marker(path, marker)? {
                    continue 'tops;
                }
            }
            return Ok(Some(number));
        }
        Ok(None)
    }

    /// Add a repository; returns its number.
    fn add(&mut self, top: &[u8], profile: usize, found_by: Option<usize>) -> usize {
        let number = self.repositories.len();
        self.repositories.push(Repository {
            top: top.to_vec(),
            profile,
            found_by,
        });
        number
    }
}

/// Return `path` relative to `top`, a directory above it.
fn below<'a>(top: &[u8], path: &'a [u8]) -> &'a [u8] {
    if top.is_empty() {
        return path;
    }
    path.get(top.len().saturating_add(1)..).unwrap_or_default()
}
