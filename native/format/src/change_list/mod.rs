//! Lists of paths that changed: what rsync said, or paths one by one.
//!
//! Takes bytes as they come and holds one line at most.  Nothing is an error: what names no path
//! below the module is told apart and counted, for a list is never all that is known of a tree.
//! Where a line can be read in several ways (`a -> b` is a symlink or a name), each path is taken: it
//! is looked at, and what is not there changes nothing.

mod rsync;

use crate::find::position;
use crate::path::{RelPath, check_name, path_order};
use rsync::{Said, is_message, read_line, unescape_octal};

/// Longer lines hold no path: every byte of one may be spelt with five, beside a symlink's target.
const LINE_BYTES: usize = 1 << 16;
/// How many of the lines that name nothing are shown.
const SHOWN: usize = 20;
/// And so many bytes of each.
const SHOWN_BYTES: usize = 200;
/// What means everything below a directory.
const ALL_BELOW: &[u8] = b"**";

/// How the paths are spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Seen from the bytes: each line as what it looks like.
    Auto,
    /// A path on each line, and nothing but paths.
    Lines,
    /// Paths that are ended by NUL.
    Nul,
    /// Lines of `rsync --itemize-changes`, or of its log file; all others are messages.
    Itemized,
    /// Lines of `rsync --verbose`.
    Names,
}

impl Spelling {
    /// By its name on the command line.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "lines" => Self::Lines,
            "nul" => Self::Nul,
            "itemized" => Self::Itemized,
            "names" => Self::Names,
            _ => return None,
        })
    }
}

/// A path that a list names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// From the module's root.
    pub path: RelPath,
    /// With everything below.
    pub all_below: bool,
    /// It is one way of several to read a line: if nothing is there, nothing is amiss.
    pub perhaps: bool,
}

/// Why a line names no path of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It leads out of the module.
    Outside,
    /// No file can have that name.
    NoPath,
}

/// What lists name.
#[derive(Debug)]
pub struct ChangeList {
    spelling: Spelling,
    /// Where the module is, as lists spell it.
    root: Vec<u8>,
    /// None: nothing was seen yet.
    separator: Option<u8>,
    /// The begin of a line.
    line: Vec<u8>,
    /// The line is too long, and its rest goes by.
    is_too_long: bool,
    /// The source has lines that rsync wrote: it ends each of them.
    is_log: bool,
    touched: Vec<Touched>,
    refused: Vec<(Vec<u8>, Refusal)>,
    refusals: u64,
    is_cut: bool,
}

impl ChangeList {
    /// Of a module at `root`, an absolute path.
    pub fn new(root: &[u8]) -> Self {
        Self {
            spelling: Spelling::Auto,
            root: root.strip_suffix(b"/").unwrap_or(root).to_vec(),
            separator: None,
            line: Vec::new(),
            is_too_long: false,
            is_log: false,
            touched: Vec::new(),
            refused: Vec::new(),
            refusals: 0,
            is_cut: false,
        }
    }

    /// A source begins, whose paths are spelt so.
    pub fn begin(&mut self, spelling: Spelling) {
        self.spelling = spelling;
        self.is_log = spelling == Spelling::Itemized;
        self.separator = match spelling {
            Spelling::Auto => None,
            Spelling::Nul => Some(0),
            _ => Some(b'\n'),
        };
    }

    /// The next bytes of the source; from the first of them is seen what ends a path.
    pub fn feed(&mut self, data: &[u8]) {
        let separator = *self
            .separator
            .get_or_insert_with(|| if data.contains(&0) { 0 } else { b'\n' });
        let mut rest = data;
        while let Some(at) = position(rest, separator) {
            let (begin, after) = rest.split_at(at);
            self.hold(begin);
            self.end_line(true);
            rest = after.get(1..).unwrap_or_default();
        }
        self.hold(rest);
    }

    /// The source has come to its end.
    pub fn end(&mut self) {
        if !self.line.is_empty() || self.is_too_long {
            self.end_line(false);
        }
    }

    /// What was named, each path once, a directory before what it holds.
    pub fn into_touched(mut self) -> Vec<Touched> {
        let order =
            |one: &Touched, other: &Touched| path_order(one.path.as_bytes(), other.path.as_bytes());
        self.touched.sort_by(order);
        self.touched.dedup_by(|later, first| {
            let same = later.path == first.path;
            if same {
                first.all_below |= later.all_below;
                first.perhaps &= later.perhaps;
            }
            same
        });
        self.touched
    }

    /// How many lines name no path of the module, and the first of them.
    pub fn refused(&self) -> (u64, &[(Vec<u8>, Refusal)]) {
        (self.refusals, &self.refused)
    }

    /// Whether the last line of some log is not whole.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn hold(&mut self, part: &[u8]) {
        if self.line.len().saturating_add(part.len()) > LINE_BYTES {
            let room = SHOWN_BYTES.saturating_sub(self.line.len());
            let shown = part.get(..room.min(part.len())).unwrap_or_default();
            self.line.extend_from_slice(shown);
            self.line.truncate(SHOWN_BYTES);
            self.is_too_long = true;
        } else if !self.is_too_long {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self, is_whole: bool) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            self.refuse(&line, Refusal::NoPath);
        } else if !line.is_empty() {
            self.take(&line, is_whole);
        }
        self.line = line;
        self.line.clear();
    }

    fn take(&mut self, line: &[u8], is_whole: bool) {
        if self.separator == Some(0) || self.spelling == Spelling::Lines {
            return self.add_path(line, false);
        }
        let (line, is_logged) = rsync::without_prefix(line);
        let said = match self.spelling {
            Spelling::Names => Said::Other,
            _ => read_line(line),
        };
        self.is_log |= is_logged || !matches!(said, Said::Other);
        let is_cut = !is_whole && self.is_log;
        self.is_cut |= is_cut;
        match said {
            Said::Unchanged => {}
            Said::Names(names) => {
                let perhaps = names.len() > 1 || !is_whole;
                for name in names {
                    self.add(&unescape_octal(name), perhaps);
                }
            }
            Said::Other if self.spelling == Spelling::Itemized => {}
            Said::Other if is_logged && self.spelling == Spelling::Auto => {}
            Said::Other => self.take_name(line, is_cut),
        }
    }

    /// A line that may be a path, or what `rsync --verbose` says of one.
    fn take_name(&mut self, line: &[u8], is_cut: bool) {
        let mut names = rsync::names_of(line);
        if let Some(deleted) = line.strip_prefix(b"deleting ") {
            names.push(deleted);
        }
        let perhaps = names.len() > 1 || is_cut || is_message(line);
        let is_escaped = |name: &&[u8]| *unescape_octal(name) != **name;
        let escaped = names.iter().any(is_escaped);
        for name in &names {
            if escaped {
                self.add(&unescape_octal(name), true);
            }
        }
        if self.spelling == Spelling::Auto || !escaped {
            let (whole, others) = names.split_first().unwrap_or((&line, &[]));
            for name in others {
                self.add(name, true);
            }
            self.add_path(whole, perhaps || escaped || line.starts_with(b"#"));
        }
    }

    /// A path as somebody wrote it down.
    fn add_path(&mut self, path: &[u8], perhaps: bool) {
        match path.strip_suffix(ALL_BELOW) {
            Some(above) if above.is_empty() || above.ends_with(b"/") => {
                self.put(above, true, perhaps);
            }
            _ => self.put(path, false, perhaps),
        }
    }

    fn add(&mut self, path: &[u8], perhaps: bool) {
        self.put(path, false, perhaps);
    }

    fn put(&mut self, spelt: &[u8], all_below: bool, perhaps: bool) {
        match self.below_root(spelt) {
            Ok(path) => self.touched.push(Touched {
                path,
                all_below,
                perhaps,
            }),
            Err(_) if perhaps => {}
            Err(refusal) => self.refuse(spelt, refusal),
        }
    }

    fn below_root(&self, spelt: &[u8]) -> Result<RelPath, Refusal> {
        let relative = if spelt.starts_with(b"/") {
            let below = spelt.strip_prefix(&*self.root);
            below
                .filter(|rest| matches!(rest, [] | [b'/', ..]))
                .ok_or(Refusal::Outside)?
        } else {
            spelt
        };
        let mut path = Vec::new();
        for name in relative.split(|&byte| byte == b'/') {
            match name {
                b"" | b"." => continue,
                b".." => return Err(Refusal::Outside),
                _ => {}
            }
            // Reserved names are no part of a snapshot: they are looked for like any other.
            if check_name(name).is_err() && !crate::path::is_reserved(name) {
                return Err(Refusal::NoPath);
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        if path.len() > crate::limits::PATH_BYTES {
            return Err(Refusal::NoPath);
        }
        Ok(RelPath::trusted(path))
    }

    fn refuse(&mut self, line: &[u8], refusal: Refusal) {
        self.refusals = self.refusals.saturating_add(1);
        if self.refused.len() < SHOWN {
            let shown = line.get(..SHOWN_BYTES).unwrap_or(line);
            self.refused.push((shown.to_vec(), refusal));
        }
    }
}
