//! Remarks: paths that are not a problem but notable, counted, with the first of them.

use huai_format::escape::unescape;
use huai_format::path::RelPath;
use huai_git::find::position;

use crate::scan::directory::{Directory, MODE, RECORD, Reason, word};

/// The number of paths that are kept of each kind.
const SHOWN: usize = 10;
/// The permissions that others need to enter and read a directory.
const OTHERS_ENTER: u32 = 0o005;
const OTHERS_READ: u32 = 0o004;

/// A kind of remark; its number is its place in `KINDS` of `huai_server.commit.remarks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// An unfinished file of rsync was left out.
    Temporary,
    /// A reserved name was left out.
    Reserved,
    /// Others cannot read a committed entry.
    Unreadable,
}

/// The remarks of one commit; memory does not grow with the tree.
#[derive(Debug)]
pub struct Remarks {
    check_readable: bool,
    /// The kinds, with the number of paths and the first of them in tree order.
    pub found: Vec<(Remark, u64, Vec<Vec<u8>>)>,
}

impl Remarks {
    /// Begin; `check_readable` adds remarks about entries that others cannot read.
    pub fn new(check_readable: bool) -> Self {
        Self {
            check_readable,
            found: Vec::new(),
        }
    }

    /// Add the remarks about a directory: names left out on purpose and, if wanted, what others cannot read.
    pub(super) fn add_directory(&mut self, directory: &Directory) {
        let path = || RelPath::trusted(directory.path.clone());
        for problem in &directory.problems {
            let kind = match problem.reason {
                Reason::Temporary => Remark::Temporary,
                Reason::Reserved => Remark::Reserved,
                _ => continue,
            };
            let names = std::iter::once(&problem.name[..]);
            self.add(kind, 1, names.map(|name| path().join(name)));
        }
        if !self.check_readable {
            return;
        }
        if mode(&directory.attributes).is_some_and(|mode| mode & OTHERS_ENTER != OTHERS_ENTER) {
            self.add(Remark::Unreadable, 1, std::iter::once(path()));
        }
        if directory.unreadable > 0 {
            let records = directory.identities.chunks_exact(RECORD);
            let closed = records.filter(|record| word(record, MODE) & OTHERS_READ == 0);
            let names = closed.filter_map(|record| unescape(directory.name(record)).ok());
            let paths = names.map(|name| path().join(&name));
            self.add(Remark::Unreadable, directory.unreadable, paths);
        }
    }

    /// Count remarks, and keep the first paths; takes no more of `paths` than are kept.
    fn add(&mut self, kind: Remark, count: u64, paths: impl Iterator<Item = RelPath>) {
        let place = self.found.iter().position(|(known, ..)| *known == kind);
        let place = place.unwrap_or_else(|| {
            self.found.push((kind, 0, Vec::new()));
            self.found.len() - 1
        });
        let (_, counted, shown) = &mut self.found[place];
        *counted += count;
        let more = SHOWN.saturating_sub(shown.len());
        shown.extend(paths.take(more).map(|path| path.as_bytes().to_vec()));
    }
}

/// Return the mode in the attributes of a directory; `None` if it is the default one.
fn mode(attributes: &[u8]) -> Option<u32> {
    let mut fields = attributes.split(|&byte| byte == b'\t').skip(1);
    let field = fields.find_map(|field| field.strip_prefix(b"m"))?;
    let end = position(field, b'\n').unwrap_or(field.len());
    u32::from_str_radix(std::str::from_utf8(&field[..end]).ok()?, 8).ok()
}
