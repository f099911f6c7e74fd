//! The text of a search, compared with names and paths.

use crate::escape::escape;
use crate::path::{basename, join};

/// The bytes that are compared at a time.
const BLOCK: usize = 64;

/// A text to search for; letters of ASCII are compared without case.
///
/// Names must have the text, or paths, if it has a slash.  With `*` or `?` the whole name must
/// match, or the end of the path.
#[derive(Debug)]
pub struct SearchText {
    text: Vec<u8>,
    is_glob: bool,
    is_path: bool,
    /// The longest text without wildcards after the last slash, which each matching name has.
    literal: Vec<u8>,
    /// The same, as a manifest spells it.
    escaped: Vec<u8>,
}

impl SearchText {
    /// Parse a text.
    pub fn parse(text: &[u8]) -> Self {
        let text = text.to_ascii_lowercase();
        let wildcard = |byte: &u8| matches!(byte, b'*' | b'?');
        let (is_path, is_glob) = (text.contains(&b'/'), text.iter().any(wildcard));
        let literals = basename(&text).split(wildcard);
        let literal = literals.max_by_key(|each| each.len()).unwrap_or_default();
        Self {
            literal: literal.to_vec(),
            escaped: escape(literal).into_owned(),
            text: if is_path && is_glob {
                [b"*/", &*text].concat()
            } else {
                text
            },
            is_glob,
            is_path,
        }
    }

    /// Return false if none of `names`, as a manifest spells them, matches.
    pub(super) fn may_match(&self, names: &[u8]) -> bool {
        contains(names, &self.escaped)
    }

    /// Return false if no name in the directory matches.
    pub(super) fn may_be_in(&self, directory: &[u8]) -> bool {
        let slash = self.text.iter().rposition(|&byte| byte == b'/');
        let above = slash.and_then(|at| self.text.get(..=at));
        self.is_glob || above.is_none_or(|above| contains(&join(directory, b"/"), above))
    }

    /// Return true if the name in a directory matches.
    pub(super) fn matches(&self, directory: &[u8], name: &[u8]) -> bool {
        if !contains(name, &self.literal) {
            return false;
        }
        match (self.is_path, self.is_glob) {
            (false, false) => true,
            (false, true) => matches_glob(&self.text, name),
            (true, false) => contains(&join(directory, name), &self.text),
            (true, true) => {
                let path = [b"/", &*join(directory, name)].concat();
                matches_glob(&self.text, &path)
            }
        }
    }
}

/// Return true if `text` has `needle`, which is in lower case.
fn contains(text: &[u8], needle: &[u8]) -> bool {
    let (Some(first), Some(last)) = (needle.first(), needle.last()) else {
        return true;
    };
    let ends = text.get(needle.len().saturating_sub(1)..);
    let blocks = text
        .chunks(BLOCK)
        .zip(ends.unwrap_or_default().chunks(BLOCK));
    for (number, (block, ends)) in blocks.enumerate() {
        // A letter and its capital differ in this bit, and so do a few other bytes.
        let is_equal = |one: &u8, other: &u8| u8::from(one | 0x20 == other | 0x20);
        let pairs = block.iter().zip(ends);
        let is_candidate = pairs.fold(0, |any, (one, end)| {
            any | is_equal(one, first) & is_equal(end, last)
        });
        let begin = number.saturating_mul(BLOCK);
        let rest = text.get(begin..).filter(|_| is_candidate != 0);
        let mut windows = rest.unwrap_or_default().windows(needle.len()).take(BLOCK);
        if windows.any(|window| window.eq_ignore_ascii_case(needle)) {
            return true;
        }
    }
    false
}

/// Return true if the whole of `text` matches `pattern`, which is in lower case.
fn matches_glob(mut pattern: &[u8], mut text: &[u8]) -> bool {
    let mut last_star = None;
    loop {
        match (pattern, text) {
            ([b'*', after @ ..], _) => {
                last_star = Some((after, text));
                pattern = after;
            }
            ([], []) => return true,
            ([one, after @ ..], [byte, rest @ ..])
                if *one == b'?' || *one == byte.to_ascii_lowercase() =>
            {
                (pattern, text) = (after, rest);
            }
            _ => {
                // The last star stands for one byte more.
                let Some((after, [_, rest @ ..])) = last_star else {
                    return false;
                };
                last_star = Some((after, rest));
                (pattern, text) = (after, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_at_every_place_in_any_case() {
        for length in [1, 2, 63, 64, 65, 200] {
            for at in 0..length {
                let text = [vec![b'-'; at], b"Q".to_vec(), vec![b'-'; length - at - 1]].concat();
                assert!(contains(&text, b"q"), "{at} of {length}");
                assert_eq!(contains(&text, b"q-"), at + 1 < length);
                assert!(!contains(&text, b"q@"));
            }
        }
        assert!(contains(b"", b"") && !contains(b"", b"a") && !contains(b"a", b"ab"));
        assert!(!contains(b"@", b"`") && !contains(b"\x00", b" "));
    }

    #[test]
    fn wildcards_stand_for_any_bytes() {
        for (pattern, text, matches) in [
            (&b"*"[..], &b""[..], true),
            (b"?", b"", false),
            (b"a*c", b"AbbC", true),
            (b"a*c", b"abcd", false),
            (b"*ab*ab", b"abxaab", true),
            (b"a?c*", b"a\xffc", true),
            (b"[a]*", b"a", false),
        ] {
            assert_eq!(matches_glob(pattern, text), matches, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_slash_compares_paths() {
        for (text, directory, name, matches) in [
            (&b"b/T"[..], &b"a/b"[..], &b"to"[..], true),
            (b"b/t", b"a", b"b", false),
            (b"b/*", b"a/b", b"c", true),
            (b"b/*", b"", b"b", false),
            (b"?/b", b"", b"b", false),
            (b"a/?", b"a", b"b", true),
            (b"a/?", b"xa", b"b", false),
        ] {
            let is_match = SearchText::parse(text).matches(directory, name);
            assert_eq!(is_match, matches, "{text:?} {directory:?} {name:?}");
        }
    }
}
