//! Extraneous leaves that wait until all subdirectories of their directory were met.

use huai_format::path::{join, parent};

use super::records::FindingRecords;
use super::scope::tree_order;

/// The waiting leaves of one directory, in order.
#[derive(Debug)]
struct Group {
    directory: Vec<u8>,
    key: Vec<u8>,
    /// The names in order, and true for each that was reported otherwise.
    names: Vec<(Vec<u8>, bool)>,
}

/// The waiting leaves of the current directory and its ancestors, innermost last.
#[derive(Debug, Default)]
pub(crate) struct Extraneous(Vec<Group>);

impl Extraneous {
    /// Add a leaf; directories come in tree order, and the names in each are sorted.
    pub(crate) fn add(&mut self, directory: &[u8], name: &[u8]) {
        let is_reported = false;
        let name = (name.to_vec(), is_reported);
        match self.0.last_mut() {
            Some(group) if group.directory == directory => group.names.push(name),
            _ => self.0.push(Group {
                directory: directory.to_vec(),
                key: tree_order(directory, true),
                names: vec![name],
            }),
        }
    }

    /// Report and drop the leaves of directories that end before `key`; `None` for all directories.
    pub(crate) fn report_before(&mut self, key: Option<&[u8]>, to: &mut FindingRecords) {
        let is_open = |group: &Group| key.is_some_and(|key| key.starts_with(&group.key));
        let left = self.0.iter().rposition(is_open).map_or(0, |last| last + 1);
        for group in self.0.drain(left..) {
            for path in group.paths() {
                to.add_extraneous(&path, false); // not a directory
            }
        }
    }

    /// Return true if the leaf `path` waits.
    pub(crate) fn holds(&self, path: &[u8]) -> bool {
        self.find(path).is_some()
    }

    /// Mark the leaf `path`, if it waits, as reported otherwise.
    pub(crate) fn mark_reported(&mut self, path: &[u8]) {
        if let Some((group, place)) = self.find(path) {
            let names = self.0.get_mut(group).map(|group| &mut group.names);
            if let Some(name) = names.and_then(|names| names.get_mut(place)) {
                name.1 = true;
            }
        }
    }

    /// Return the paths of all waiting leaves.
    pub(crate) fn waiting(&self) -> Vec<Vec<u8>> {
        self.0.iter().flat_map(Group::paths).collect()
    }

    /// Return the positions of group and name of the leaf `path`; `None` if it is not here, or was
    /// reported.
    fn find(&self, path: &[u8]) -> Option<(usize, usize)> {
        let above = parent(path);
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        let group = self.0.iter().rposition(|group| group.directory == above)?;
        let names = &self.0.get(group)?.names;
        let place = names
            .binary_search_by(|(each, _)| (**each).cmp(name))
            .ok()?;
        names.get(place).filter(|(_, is_reported)| !is_reported)?;
        Some((group, place))
    }
}

impl Group {
    fn paths(&self) -> impl Iterator<Item = Vec<u8>> {
        let names = self.names.iter().filter(|(_, is_reported)| !is_reported);
        names.map(|(name, _)| join(&self.directory, name))
    }
}
