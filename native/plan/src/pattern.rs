//! Matches paths with patterns of rsync's --exclude and --filter, as in its exclude.c:
//!
//! - without a slash or `**`: the last component
//! - with a slash in front: the whole path
//! - with `**`: the path from its start or from after any slash
//! - with any other slash: as many of the last components as the pattern has
//! - with a slash at the end: directories only
//! - `dir/***`: `dir`, if it is a directory, and everything below it

use crate::wildmatch::Glob;

/// A pattern of a filter rule.
#[derive(Debug, Clone)]
pub struct Pattern {
    part: MatchedPart,
    glob: Glob,
    directories: bool,
    /// True for `dir/***`; then `glob` is `dir`.
    with_all_below: bool,
    /// The literal start of all paths that match, as far as known.
    head: Vec<u8>,
}

/// The part of a path that has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchedPart {
    /// The last component.
    Name,
    /// The whole path.
    Whole,
    /// The whole path with a slash in front.
    FromSlash,
    /// The rest after any slash, or the whole path.
    AfterAnySlash,
    /// The last components: one more than this number of slashes.
    Last(usize),
    /// The pattern cannot match.
    Nothing,
}

impl Pattern {
    /// Parse a pattern; like rsync, accepts any text.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let shorter = text
            .strip_suffix(b"/")
            .filter(|shorter| !shorter.is_empty());
        let text = shorter.unwrap_or(text);
        let body = text.strip_prefix(b"/").unwrap_or(text);
        // Without a wildcard a backslash is a plain byte.
        let is_plain = !text.iter().any(|byte| b"*?[".contains(byte));
        let glob = if is_plain {
            Some(Glob::literal(body))
        } else {
            Glob::parse(body)
        };
        let part = glob.as_ref().map(|glob| part(text, glob));
        let glob = glob.unwrap_or_default();
        let dir = glob.before_all().filter(|_| text.ends_with(b"***"));
        let is_special = |byte: &u8| b"*?[\\".contains(byte);
        let plain = body.iter().position(is_special).unwrap_or(body.len());
        let head = (part == Some(MatchedPart::Whole)).then(|| body.iter().take(plain).copied());
        Self {
            part: part.unwrap_or(MatchedPart::Nothing),
            directories: shorter.is_some(),
            with_all_below: dir.is_some(),
            glob: dir.unwrap_or(glob),
            head: head.into_iter().flatten().collect(),
        }
    }

    /// Return true if the pattern matches names only, or can match no path below any of `directories`.
    pub(crate) fn is_blind_below(&self, directories: [&[u8]; 2]) -> bool {
        self.part == MatchedPart::Name
            || directories.iter().all(|directory| {
                let inside = [directory, &b"/"[..]].concat();
                !self.head.starts_with(&inside) && !inside.starts_with(&self.head)
            })
    }

    /// Return true if the pattern matches the entry `name` of the directory at `above`.
    #[must_use]
    pub fn matches_entry(&self, above: &[u8], name: &[u8], is_directory: bool) -> bool {
        if self.part == MatchedPart::Name || above.is_empty() {
            return self.matches(name, is_directory);
        }
        // Most patterns of scans match one entry at the top.
        self.may_match_below(above) && self.matches(&[above, b"/", name].concat(), is_directory)
    }

    /// Return false if the pattern cannot match a path below `directory`.
    fn may_match_below(&self, directory: &[u8]) -> bool {
        let most = self.head.len().min(directory.len());
        self.head.get(..most) == directory.get(..most)
            && (self.head.len() <= most || self.head.get(most) == Some(&b'/'))
    }

    /// Return true if the pattern matches the entry at `path`.
    pub(crate) fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        if self.directories && !is_directory {
            return false;
        }
        match self.part {
            MatchedPart::Name => self.fits(
                path.rsplit(|&byte| byte == b'/').next().unwrap_or(path),
                is_directory,
            ),
            MatchedPart::Whole => self.fits(path, is_directory),
            MatchedPart::FromSlash => self.fits(&[b"/", path].concat(), is_directory),
            MatchedPart::AfterAnySlash => {
                let from = |at: usize| path.get(at.saturating_add(1)..).unwrap_or_default();
                self.fits(path, is_directory)
                    || slashes(path).any(|at| self.fits(from(at), is_directory))
            }
            MatchedPart::Last(count) => {
                let mut above = path.rsplitn(count.saturating_add(2), |&byte| byte == b'/');
                above.nth(count).is_some() && {
                    let above = above
                        .next()
                        .map_or(0, |above| above.len().saturating_add(1));
                    self.fits(path.get(above..).unwrap_or_default(), is_directory)
                }
            }
            MatchedPart::Nothing => false,
        }
    }

    /// Return true if the glob matches `text`, the part of a path; with `dir/***`, if it matches a
    /// directory above, or `text` as a directory.
    fn fits(&self, text: &[u8], is_directory: bool) -> bool {
        if !self.with_all_below {
            return self.glob.matches(text);
        }
        let above = |at: usize| text.get(..at).unwrap_or_default();
        (is_directory && self.glob.matches(text))
            || slashes(text).any(|at| self.glob.matches(above(at)))
    }
}

/// Return the part to match; `text` has no slash at its end, `glob` also none in front.
fn part(text: &[u8], glob: &Glob) -> MatchedPart {
    let slashes = slashes(text).count();
    let deep = text.windows(2).any(|pair| pair == b"**");
    match (text, deep) {
        (_, false) if slashes == 0 => MatchedPart::Name,
        ([b'/', ..], _) => MatchedPart::Whole,
        ([b'*', b'*', ..], _) => MatchedPart::FromSlash,
        (_, true) => MatchedPart::AfterAnySlash,
        // A slash in a class counts as a slash of the pattern, but cannot match.
        _ if glob.slashes() != slashes => MatchedPart::Nothing,
        _ => MatchedPart::Last(slashes),
    }
}

fn slashes(text: &[u8]) -> impl Iterator<Item = usize> {
    let is_there = |(at, byte): (usize, &u8)| (*byte == b'/').then_some(at);
    text.iter().enumerate().filter_map(is_there)
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn what_each_kind_of_pattern_matches() {
        for (pattern, matching, others) in [
            ("a", "a x/a a/", "ab a/b"),
            ("/a", "a", "x/a"),
            ("a/", "a/ x/a/", "a"),
            ("a/b", "a/b x/a/b a/b/", "b xa/b a/b/c"),
            ("a*b/c", "ab/c x/axb/c", "a/b/c"),
            ("a/**/b", "a/x/b y/a/x/z/b", "a/b xa/x/b"),
            ("**/a", "a x/a", "xa"),
            ("**a", "a xa x/ya", "ab"),
            ("/a/***", "a/ a/b a/b/", "a ab/c x/a/b"),
            ("a/***", "a/ x/a/b", "a"),
            ("a/***/", "a/ a/b/", "a a/b"),
            ("**/***", "a/ a/b a", ""),
            ("a[/]b", "", "a/b ab"),
            ("[**]/a", "*/a x/*/a", "b/a"),
            ("a\\b", "a\\b", "ab"),
            ("a\\?", "a?", "a\\x ab"),
            ("[", "", "["),
            ("/", "", "a"),
            ("*", "a x/a", ""),
        ] {
            for (paths, expected) in [(matching, true), (others, false)] {
                for path in paths.split_ascii_whitespace() {
                    let plain = path.trim_end_matches('/');
                    let is_match = Pattern::new(pattern.as_bytes())
                        .matches(plain.as_bytes(), plain.len() < path.len());
                    assert_eq!(is_match, expected, "{pattern} {path}");
                }
            }
        }
    }
}
