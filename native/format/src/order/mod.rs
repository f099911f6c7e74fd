//! The order in which a tree is published: in which stage a path is, and which rule says so.
//!
//! The first of these that matches decides:
//!
//! 1. rules of volatile files, which are no symlinks;
//! 2. the rules that somebody stated;
//! 3. the rules of the repositories around the path, outermost first, seen from their tops;
//! 4. outside of repositories, the generic rules.
//!
//! A repository is where it was assigned to be, and below that place none is looked for.  Elsewhere
//! it is where the markers of a profile are.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

mod anywhere;
mod names;
mod patterns;

pub use names::{Lookup, Marker};
pub use patterns::{Pattern, first};

use anywhere::Anywhere;

use crate::error::Result;
use crate::objects::ObjectReader;
use crate::path::parent;

/// A rule of the table.
#[derive(Debug)]
pub struct Rule {
    /// Which paths it is about.
    pub pattern: Pattern,
    /// Where they are published.
    pub stage: u8,
}

/// How one kind of repository is laid out.
#[derive(Debug)]
pub struct Profile {
    /// Where all markers of one of these are, there is a top.
    pub tops: Vec<Vec<Marker>>,
    /// Its rules, by their places in the table.
    pub rules: Range<usize>,
}

/// What decides.
#[derive(Debug)]
pub struct Table {
    /// All of them.
    pub rules: Vec<Rule>,
    /// Those of volatile files, by their places.
    pub volatile: Range<usize>,
    /// Those that somebody stated.
    pub stated: Range<usize>,
    /// Those outside of repositories.
    pub generic: Range<usize>,
    /// In the order in which they are tried.
    pub profiles: Vec<Profile>,
    /// Tops that somebody stated, and the numbers of their profiles; none: no repository.
    pub assigned: HashMap<Vec<u8>, Option<usize>>,
}

/// A subtree that is laid out as a profile says.
#[derive(Debug)]
pub struct Repository {
    /// Where.
    pub top: Vec<u8>,
    /// Which.
    pub profile: usize,
    /// Which of its tops is there; none: it was assigned.
    pub found_by: Option<usize>,
}

/// Where a path is published, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placement {
    /// 0 if no rule matches.
    pub stage: u8,
    /// The one that decided.
    pub rule: Option<usize>,
    /// The repository whose rule decided, else the innermost one around the path.
    pub repository: Option<usize>,
}

/// Repositories around a directory, outermost first.
type Around = Arc<[usize]>;

/// The stages of the paths of one snapshot.
#[derive(Debug)]
pub struct Order<R> {
    table: Table,
    /// The rules, neither volatile nor stated, that put something into another stage than the first.
    late: Anywhere,
    lookup: Lookup<R>,
    around: HashMap<Vec<u8>, Around>,
    repositories: Vec<Repository>,
}

impl<R: ObjectReader> Order<R> {
    /// Reads nothing yet.
    pub fn new(table: Table, lookup: Lookup<R>) -> Self {
        let mut late = Anywhere::default();
        let profiles = table.profiles.iter().map(|profile| &profile.rules);
        for range in profiles.chain([&table.generic]) {
            let rules = table.rules.get(range.clone()).unwrap_or_default();
            let rules = rules.iter().filter(|rule| rule.stage > 0);
            rules.for_each(|rule| late.add(&rule.pattern));
        }
        Self {
            table,
            late,
            lookup,
            around: HashMap::new(),
            repositories: Vec::new(),
        }
    }

    /// The snapshot's own names.
    pub fn lookup(&mut self) -> &mut Lookup<R> {
        &mut self.lookup
    }

    /// Those that were found so far.
    pub fn repositories(&self) -> &[Repository] {
        &self.repositories
    }

    /// In which stage a file or symlink is published: that of its `placement`.
    ///
    /// Looks for repositories only if one of their rules may decide.
    pub fn stage(&mut self, path: &[u8], symlink: bool) -> Result<u8> {
        if self.late.may_match(path, symlink) {
            return Ok(self.placement(path, symlink)?.stage);
        }
        let rule = self.rule_anywhere(path, symlink);
        Ok(rule.map_or(0, |rule| self.stage_of(rule)))
    }

    /// Where a file or symlink is published.
    pub fn placement(&mut self, path: &[u8], symlink: bool) -> Result<Placement> {
        let inside = self.around(parent(path))?;
        let innermost = inside.last().copied();
        if let Some(rule) = self.rule_anywhere(path, symlink) {
            return Ok(self.placed(rule, innermost));
        }
        for &number in &*inside {
            let found = self.repositories.get(number).and_then(|repository| {
                let profile = self.table.profiles.get(repository.profile)?;
                self.first(&profile.rules, below(&repository.top, path), symlink)
            });
            if let Some(rule) = found {
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

    /// The rule that decides wherever repositories are.
    fn rule_anywhere(&self, path: &[u8], symlink: bool) -> Option<usize> {
        let Table {
            volatile, stated, ..
        } = &self.table;
        let is_volatile = || self.first(volatile, path, false);
        let volatile = if symlink { None } else { is_volatile() };
        volatile.or_else(|| self.first(stated, path, symlink))
    }

    fn first(&self, rules: &Range<usize>, path: &[u8], symlink: bool) -> Option<usize> {
        let found = self.table.rules.get(rules.clone())?;
        let place = first(found.iter().map(|rule| &rule.pattern), path, symlink)?;
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

    /// The repositories that `folder` is in, outermost first.
    pub fn around(&mut self, folder: &[u8]) -> Result<Around> {
        let mut missing = Vec::new();
        let mut known = None;
        let mut path = Some(folder);
        while let Some(here) = path {
            known = self.around.get(here).cloned();
            if known.is_some() {
                break;
            }
            missing.push(here);
            path = (!here.is_empty()).then(|| parent(here));
        }
        let mut found = known.unwrap_or_default();
        for path in missing.into_iter().rev() {
            found = self.entered(path, found)?;
            self.around.insert(path.to_vec(), Arc::clone(&found));
        }
        Ok(found)
    }

    /// The repositories around the content of `path`; `outer` are those around `path`.
    fn entered(&mut self, path: &[u8], outer: Around) -> Result<Around> {
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

    fn is_below_assigned(&self, path: &[u8]) -> bool {
        let assigned = &self.table.assigned;
        let mut here = path;
        while !assigned.is_empty() && !here.is_empty() {
            here = parent(here);
            if assigned.contains_key(here) {
                return true;
            }
        }
        false
    }

    /// The number of the top of a profile that `path` is.
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

/// `path` relative to `top`, a directory above it.
fn below<'a>(top: &[u8], path: &'a [u8]) -> &'a [u8] {
    if top.is_empty() {
        return path;
    }
    path.get(top.len().saturating_add(1)..).unwrap_or_default()
}
