//! What a scan leaves out.  The rules stand in `huai_server/scan/exclude.py`.

use crate::glob;

/// The random characters at the end of rsync's temporary names.
const RANDOM: usize = 6;
/// What rsync does not grant until the file is complete.
const NOT_OWNER: u32 = 0o077;

/// A parsed pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As fnmatch(3) takes it.
    pub glob: Vec<u8>,
    /// Match the whole path, not the last component.
    pub anchored: bool,
    /// Match directories only.
    pub directories: bool,
}

impl Pattern {
    /// Whether it leaves out the entry `name` of the directory at `above`.
    pub(crate) fn leaves_out(&self, above: &[u8], name: &[u8], is_directory: bool) -> bool {
        if self.directories && !is_directory {
            return false;
        }
        if self.anchored && !above.is_empty() {
            glob::matches(&self.glob, &[above, b"/", name].concat(), true)
        } else {
            glob::matches(&self.glob, name, self.anchored)
        }
    }
}

/// Whether a regular file is one of rsync's temporary files: `.NAME.XXXXXX`.
pub(crate) fn is_unfinished(name: &[u8], mode: u32) -> bool {
    let [b'.', rest @ ..] = name else {
        return false;
    };
    let Some((stem, random)) = rest.split_last_chunk::<RANDOM>() else {
        return false;
    };
    mode & NOT_OWNER == 0
        && random.iter().all(u8::is_ascii_alphanumeric)
        && matches!(stem, [_, .., b'.'])
}
