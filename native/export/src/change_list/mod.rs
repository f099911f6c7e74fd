//! Lists of changed paths: output of rsync or of a file system, or paths one by one.
//!
//! Takes bytes as they come and holds one line at most.  Nothing is an error: a line without a path
//! of the module is kept apart and counted, because a list is never the only source of changes.
//! If a line has several readings (`a -> b` is a symlink or a name), each path is taken: all are
//! looked at, and a path that does not exist changes nothing.

mod btrfs;
mod reading;
mod rsync;
mod zfs;

use huai_format::path::{RelPath, below, check_name, path_order};
use huai_git::find::position;
use rsync::{RsyncLine, is_message, read_line, unescape_octal};

/// The longest line with a path: each byte may take five when escaped, plus a symlink's target.
const LINE_BYTES: usize = 1 << 16;
/// The number of refused lines that are kept.
const SHOWN: usize = 20;
/// The bytes of each refused line that are kept.
const SHOWN_BYTES: usize = 200;
/// The name that means everything below a directory.
const ALL_BELOW: &[u8] = b"**";

/// The way in which paths are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Detect it from the bytes, line by line.
    Auto,
    /// One path on each line.
    Lines,
    /// Paths that end with NUL.
    Nul,
    /// Lines of `rsync --itemize-changes`, or of its log file; all others are messages.
    Itemized,
    /// Lines of `rsync --verbose`.
    Names,
    /// Lines of `zfs diff -FH`.
    ZfsDiff,
    /// Lines of `btrfs receive --dump`.
    BtrfsDump,
}

impl Spelling {
    /// Parse the name that the command line uses; `None` for an unknown one.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "lines" => Self::Lines,
            "nul" => Self::Nul,
            "itemized" => Self::Itemized,
            "names" => Self::Names,
            "zfs-diff" => Self::ZfsDiff,
            "btrfs-dump" => Self::BtrfsDump,
            _ => return None,
        })
    }
}

/// A path in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The path from the module's root.
    pub path: RelPath,
    /// True if everything below has changed as well.
    pub all_below: bool,
    /// True if the line has other readings: then the path may be missing.
    pub perhaps: bool,
}

/// The reason why a line has no path of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It leads out of the module.
    Outside,
    /// No file can have that name.
    NoPath,
}

/// The paths of one or more lists.
#[derive(Debug)]
pub struct ChangeList {
    spelling: Spelling,
    /// The directories that are the module's root, as lists spell them.
    roots: Vec<Vec<u8>>,
    /// The path of the snapshot in lines of btrfs.
    snapshot: Option<Vec<u8>>,
    /// The byte between paths; `None` before the first byte.
    separator: Option<u8>,
    /// The beginning of a line.
    line: Vec<u8>,
    /// True if the line is too long: its rest is skipped.
    is_too_long: bool,
    /// True if a program wrote the source: then each line ends with a newline.
    is_log: bool,
    touched: Vec<Touched>,
    refused: Vec<(Vec<u8>, Refusal)>,
    refusals: u64,
    is_cut: bool,
}

impl ChangeList {
    /// Make an empty list for a module, whose root directory the lists spell as one of `roots`.
    ///
    /// If no root is relative, relative paths begin at the module's root.
    pub fn new(roots: &[Vec<u8>]) -> Self {
        let root = |root: &Vec<u8>| root.strip_suffix(b"/").unwrap_or(root).to_vec();
        Self {
            spelling: Spelling::Auto,
            roots: roots.iter().map(root).collect(),
            snapshot: None,
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

    /// Begin a source with this spelling.
    pub fn begin_source(&mut self, spelling: Spelling) {
        self.spelling = spelling;
        self.is_log = matches!(
            spelling,
            Spelling::Itemized | Spelling::ZfsDiff | Spelling::BtrfsDump
        );
        self.snapshot = None;
        self.separator = match spelling {
            Spelling::Auto => None,
            Spelling::Nul => Some(0),
            _ => Some(b'\n'),
        };
    }

    /// Add the next bytes; with `Auto`, the first call detects the byte that ends paths.
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

    /// End the source; a last line without an end is added too, and a log then counts as cut.
    pub fn end_source(&mut self) {
        if !self.line.is_empty() || self.is_too_long {
            self.end_line(false);
        }
    }

    /// Return each path once, directories before their entries; everything below counts if any line says so, doubt
    /// only if all do.
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

    /// Return the number of lines without a path of the module, and the starts of the first of
    /// them, each with the reason.
    pub fn refused(&self) -> (u64, &[(Vec<u8>, Refusal)]) {
        (self.refusals, &self.refused)
    }

    /// Return true if the last line of some log is incomplete.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Append a part of the current line; of a line that is too long, only the start is kept.
    fn hold(&mut self, part: &[u8]) {
        if self.line.len().saturating_add(part.len()) > LINE_BYTES {
            let room = SHOWN_BYTES.saturating_sub(self.line.len());
            let start = part.get(..room.min(part.len())).unwrap_or_default();
            self.line.extend_from_slice(start);
            self.line.truncate(SHOWN_BYTES);
            self.is_too_long = true;
        } else if !self.is_too_long {
            self.line.extend_from_slice(part);
        }
    }

    /// Parse the current line, and add its paths; one that is too long is refused, an empty one ignored; `is_whole`
    /// is false if no separator ended it.
    fn end_line(&mut self, is_whole: bool) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            self.refuse(&line, Refusal::NoPath);
        } else if !line.is_empty() {
            self.read_line(&line, is_whole);
        }
        self.line = line;
        self.line.clear();
    }

    /// Parse `line` according to the spelling, and add its paths; a whole line without any is refused.  Unless
    /// `is_whole`, a separator is missing: then a log counts as cut.
    fn read_line(&mut self, line: &[u8], is_whole: bool) {
        if self.separator == Some(0) || self.spelling == Spelling::Lines {
            return self.add_path(line, false);
        }
        let readings = match self.spelling {
            Spelling::ZfsDiff => zfs::read_line(line),
            Spelling::BtrfsDump => btrfs::read_line(line, &mut self.snapshot),
            _ => return self.read_rsync(line, is_whole),
        };
        self.is_cut |= !is_whole;
        match readings {
            Some(readings) => readings.iter().for_each(|each| {
                self.add_spelled(&each.path, each.all_below, each.perhaps || !is_whole);
            }),
            None if is_whole => self.refuse(line, Refusal::NoPath),
            None => {}
        }
    }

    /// Parse a line that rsync may have written, and add its paths; unchanged paths, and messages in a log, are
    /// ignored; `is_whole` is false if no separator ended it.
    fn read_rsync(&mut self, line: &[u8], is_whole: bool) {
        let (line, is_logged) = rsync::without_prefix(line);
        let line_kind = match self.spelling {
            Spelling::Names => RsyncLine::Other,
            _ => read_line(line),
        };
        self.is_log |= is_logged || !matches!(line_kind, RsyncLine::Other);
        let is_cut = !is_whole && self.is_log;
        self.is_cut |= is_cut;
        match line_kind {
            RsyncLine::Unchanged => {}
            RsyncLine::Names(names) => {
                let perhaps = names.len() > 1 || !is_whole;
                for name in names {
                    self.add(&unescape_octal(name), perhaps);
                }
            }
            RsyncLine::Other if self.spelling == Spelling::Itemized => {}
            RsyncLine::Other if is_logged && self.spelling == Spelling::Auto => {}
            RsyncLine::Other => self.take_name(line, is_cut),
        }
    }

    /// Add the possible paths of a line that is a path, or output of `rsync --verbose`; `is_cut` means
    /// that its end may be missing.
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

    /// Add a path as a person wrote it, perhaps with `**` at its end; `perhaps` as in `Touched`.
    fn add_path(&mut self, path: &[u8], perhaps: bool) {
        match path.strip_suffix(ALL_BELOW) {
            Some(above) if above.is_empty() || above.ends_with(b"/") => {
                self.add_spelled(above, true, perhaps);
            }
            _ => self.add_spelled(path, false, perhaps),
        }
    }

    fn add(&mut self, path: &[u8], perhaps: bool) {
        self.add_spelled(path, false, perhaps);
    }

    /// Add a path that is inside the module, with everything below if `all_below`; otherwise refuse the line, unless
    /// it has other readings (`perhaps`).
    fn add_spelled(&mut self, spelt: &[u8], all_below: bool, perhaps: bool) {
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

    /// Return the path from the module's root, without empty and `.` components, reserved names included, or the
    /// reason to refuse it.
    fn below_root(&self, spelt: &[u8]) -> Result<RelPath, Refusal> {
        let mut roots = self.roots.iter();
        let relative = match roots.clone().find_map(|root| below(spelt, root)) {
            Some(relative) => relative,
            None if spelt.starts_with(b"/") || roots.any(|root| !root.starts_with(b"/")) => {
                return Err(Refusal::Outside);
            }
            None => spelt,
        };
        let mut path = Vec::new();
        for name in relative.split(|&byte| byte == b'/') {
            match name {
                b"" | b"." => continue,
                b".." => return Err(Refusal::Outside),
                _ => {}
            }
            // Reserved names are not part of a snapshot, but are looked up like any other.
            if check_name(name).is_err() && !huai_format::path::is_reserved(name) {
                return Err(Refusal::NoPath);
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        if path.len() > huai_format::limits::PATH_BYTES {
            return Err(Refusal::NoPath);
        }
        Ok(RelPath::trusted(path))
    }

    /// Count a line without a path, and keep the start of the first ones.
    fn refuse(&mut self, line: &[u8], refusal: Refusal) {
        self.refusals = self.refusals.saturating_add(1);
        if self.refused.len() < SHOWN {
            let start = line.get(..SHOWN_BYTES).unwrap_or(line);
            self.refused.push((start.to_vec(), refusal));
        }
    }
}
