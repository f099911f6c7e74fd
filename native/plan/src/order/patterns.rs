//! Matches paths with the patterns of publish rules (FORMAT.md, "Publish rules").
//!
//! A pattern has one glob for each component of a path, and `**` for any number of directories.
//! Rule to keep: no pattern takes more than quadratic time.

use huai_format::path::basename;

use crate::wildmatch::Glob;

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagePattern {
    parts: Vec<Part>,
    symlinks: bool,
}

/// A pattern for one or more components of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Name(Glob),
    /// Any number of directories.
    AnyDepth,
}

impl StagePattern {
    /// Make a pattern from components in which `?` and `*` are special, or that are `**`, at the end everything
    /// below; with `symlinks` it matches symlinks only.
    pub fn new<'a>(components: impl IntoIterator<Item = &'a [u8]>, symlinks: bool) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for component in components {
            if component != b"**" {
                parts.push(Part::Name(Glob::of_stars(component)));
            } else if !matches!(parts.last(), Some(Part::AnyDepth)) {
                parts.push(Part::AnyDepth);
            }
        }
        if matches!(parts.last(), Some(Part::AnyDepth)) {
            // Everything below, except the directory itself.
            parts.push(Part::Name(Glob::of_stars(b"*")));
        }
        Self { parts, symlinks }
    }

    /// Return the pattern that matches below any directory what this one matches at the top.
    pub(super) fn seen_from_anywhere(&self) -> Self {
        let mut parts = self.parts.clone();
        if !matches!(parts.first(), Some(Part::AnyDepth)) {
            parts.insert(0, Part::AnyDepth);
        }
        Self { parts, ..*self }
    }

    /// Return true if it matches all files and symlinks of a directory, or none.
    pub(super) fn is_of_whole_directories(&self) -> bool {
        let is_any = |glob: &Glob| glob.matches_any_name();
        !self.symlinks && matches!(&*self.parts, [.., Part::Name(glob)] if is_any(glob))
    }

    /// Return the first and the last byte that the names of all matching paths have.
    pub(super) fn name_ends(&self) -> (Option<u8>, Option<u8>) {
        match self.parts.last() {
            Some(Part::Name(glob)) => glob.ends(),
            _ => (None, None),
        }
    }

    /// Return true if it matches `path`, which is not empty and ends in the component `name`.
    pub(super) fn matches(&self, path: &[u8], name: &[u8], symlink: bool) -> bool {
        // Most patterns end in a name that no other path has.
        let may_end = match self.parts.last() {
            Some(Part::Name(glob)) => glob.matches(name),
            _ => true,
        };
        may_end && (symlink || !self.symlinks) && fits(&self.parts, &names(path))
    }
}

/// Return true if `parts` match all `names`.
fn fits(parts: &[Part], names: &[&[u8]]) -> bool {
    let (mut pattern, mut rest) = (parts, names);
    // The place to continue if the rest after the last `**` does not match: one directory further.
    let mut deeper: Option<(&[Part], &[&[u8]])> = None;
    loop {
        match (pattern, rest) {
            ([Part::AnyDepth, after @ ..], _) => {
                deeper = Some((after, rest));
                pattern = after;
                continue;
            }
            ([Part::Name(glob), after @ ..], [name, further @ ..]) if glob.matches(name) => {
                (pattern, rest) = (after, further);
                continue;
            }
            ([], []) => return true,
            _ => {}
        }
        let Some((after, [_, further @ ..])) = deeper else {
            return false;
        };
        deeper = Some((after, further));
        (pattern, rest) = (after, further);
    }
}

/// Return the position of the first pattern that matches `path`, which is not empty; `None` if none
/// does.
pub fn first<'a>(
    patterns: impl IntoIterator<Item = &'a StagePattern>,
    path: &[u8],
    symlink: bool,
) -> Option<usize> {
    let name = basename(path);
    let mut patterns = patterns.into_iter();
    patterns.position(|pattern| pattern.matches(path, name, symlink))
}

/// Split a non-empty path into components.
fn names(path: &[u8]) -> Vec<&[u8]> {
    path.split(|&byte| byte == b'/').collect()
}

#[cfg(test)]
mod tests {
    use super::{StagePattern, first};

    fn matches(pattern: &str, path: &str, symlink: bool) -> bool {
        let text = pattern.trim_end_matches('@');
        let pattern =
            StagePattern::new(text.as_bytes().split(|&byte| byte == b'/'), text != pattern);
        first([&pattern], path.as_bytes(), symlink).is_some()
    }

    #[test]
    fn what_each_kind_of_pattern_matches() {
        for (pattern, matching, others) in [
            ("a", "a", "b a/a ab"),
            ("**/a", "a b/a b/c/a", "ab a/b"),
            ("a/**/b", "a/b a/x/b a/x/y/b a/b/b", "a x/a/b a/bb"),
            ("a/**", "a/b a/b/c", "a b/a"),
            ("**/**/a/**/**", "a/b x/a/b", "a"),
            ("**", "a a/b", ""),
            ("?/*.b", "x/.b x/y.b.b", "xy/a.b x/b \u{e9}/a.b"),
            ("[a]/\\*", "[a]/\\ [a]/\\x", "a/\\ a/x"),
        ] {
            for (paths, expected) in [(matching, true), (others, false)] {
                for path in paths.split_ascii_whitespace() {
                    let is_match = matches(pattern, path, false);
                    assert_eq!(is_match, expected, "{pattern} {path}");
                }
            }
        }
    }

    #[test]
    fn some_are_about_symlinks_only() {
        assert!(matches("a@", "a", true));
        assert!(!matches("a@", "a", false));
        assert!(matches("a", "a", true));
    }
}
