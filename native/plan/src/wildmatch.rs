//! Globs of rsync (lib/wildmatch.c) on bytes.
//!
//! `*` stops at a slash, `**` does not, `?` and classes match no slash, and an incomplete glob
//! matches nothing.  After a star only the nearest matching place is tried, where a farther one
//! cannot change the result: so no text takes exponential time.

/// One element of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// This byte.
    Byte(u8),
    /// Any byte but a slash.
    One,
    /// Any byte of a set without a slash.
    Class(Class),
    /// Any bytes but slashes.
    Star,
    /// Any bytes.
    TwoStars,
}

/// A set of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Class([u64; 4]);

/// A parsed glob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Glob {
    tokens: Vec<Token>,
    /// The literal start and end of all texts that match.
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Glob {
    /// Parse a glob; `None` if it matches nothing.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (token, after) = token(rest)?;
            tokens.push(token);
            rest = after;
        }
        Some(Self::of(tokens))
    }

    /// Make a glob from a text without special bytes.
    pub(crate) fn literal(text: &[u8]) -> Self {
        Self::of(text.iter().map(|&byte| Token::Byte(byte)).collect())
    }

    /// Make a glob from a text in which only `?` and `*` are special.
    pub(crate) fn of_stars(text: &[u8]) -> Self {
        let token = |&byte: &u8| match byte {
            b'?' => Token::One,
            b'*' => Token::Star,
            byte => Token::Byte(byte),
        };
        Self::of(text.iter().map(token).collect())
    }

    /// Return the only text that matches, if there is only one.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        (self.head.len() == self.tokens.len()).then_some(&*self.head)
    }

    /// Return the first and the last byte of all texts that match.
    pub(crate) fn ends(&self) -> (Option<u8>, Option<u8>) {
        (self.head.first().copied(), self.tail.last().copied())
    }

    /// Return true if it matches every text without a slash.
    pub(crate) fn matches_any_name(&self) -> bool {
        *self.tokens == [Token::Star]
    }

    /// Make a glob, with the literal start and end of its tokens.
    fn of(tokens: Vec<Token>) -> Self {
        let bytes = |token: &Token| match token {
            Token::Byte(byte) => Some(*byte),
            _ => None,
        };
        let mut tail: Vec<u8> = tokens.iter().rev().map_while(bytes).collect();
        tail.reverse();
        Self {
            head: tokens.iter().map_while(bytes).collect(),
            tail,
            tokens,
        }
    }

    /// Return the number of slashes outside of classes.
    pub(crate) fn slashes(&self) -> usize {
        let slash = Token::Byte(b'/');
        self.tokens.iter().filter(|token| **token == slash).count()
    }

    /// Return the glob before a slash and two stars at its end; `None` without these.
    pub(crate) fn before_all(&self) -> Option<Self> {
        match &*self.tokens {
            [before @ .., Token::Byte(b'/'), Token::TwoStars] => Some(Self::of(before.to_vec())),
            _ => None,
        }
    }

    /// Return true if all of `text` matches.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        // Most texts differ in the first or the last byte.  Neither they nor an empty part cost a call.
        let first = self.head.first();
        let last = self.tail.last();
        (first.is_none() || first == text.first())
            && (last.is_none() || last == text.last())
            && (first.is_none() || text.starts_with(&self.head))
            && (last.is_none() || text.ends_with(&self.tail))
            && fits(&self.tokens, text)
    }
}

/// Return true if `tokens` match all of `text`.
fn fits(tokens: &[Token], text: &[u8]) -> bool {
    let (mut pattern, mut rest) = (tokens, text);
    // The place to continue if the rest after the last star does not match: one byte further.
    let mut star: Option<(&[Token], &[u8])> = None;
    let mut two_stars = star;
    loop {
        match (pattern, rest) {
            ([Token::Star, after @ ..], _) => {
                star = Some((after, rest));
                pattern = after;
                continue;
            }
            ([Token::TwoStars, after @ ..], _) => {
                (star, two_stars) = (None, Some((after, rest)));
                pattern = after;
                continue;
            }
            ([token, after @ ..], [byte, further @ ..]) if token.takes(*byte) => {
                (pattern, rest) = (after, further);
                continue;
            }
            ([], []) => return true,
            _ => {}
        }
        if let Some((after, [byte, further @ ..])) = star {
            if *byte != b'/' {
                star = Some((after, further));
                (pattern, rest) = (after, further);
                continue;
            }
        }
        let Some((after, [_, further @ ..])) = two_stars else {
            return false;
        };
        (star, two_stars) = (None, Some((after, further)));
        (pattern, rest) = (after, further);
    }
}

impl Token {
    /// Return true if the token, which is not a star, matches the byte.
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::One => byte != b'/',
            Self::Class(class) => class.holds(byte),
            Self::Star | Self::TwoStars => false,
        }
    }
}

impl Class {
    fn holds(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6)).copied();
        word.unwrap_or_default().wrapping_shr(u32::from(byte & 63)) & 1 != 0
    }

    fn add(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1_u64.wrapping_shl(u32::from(byte & 63));
        }
    }
}

/// Parse the token with which `rest` begins; returns it and what follows, `None` if it is malformed, or at the end.
fn token(rest: &[u8]) -> Option<(Token, &[u8])> {
    Some(match rest {
        [b'\\'] | [] => return None,
        [b'?', after @ ..] => (Token::One, after),
        [b'*', b'*', after @ ..] => {
            let more = after.iter().take_while(|&&byte| byte == b'*').count();
            (Token::TwoStars, after.get(more..).unwrap_or_default())
        }
        [b'*', after @ ..] => (Token::Star, after),
        [b'[', inside @ ..] => {
            let (class, after) = class(inside)?;
            (Token::Class(class), after)
        }
        [b'\\', byte, after @ ..] | [byte, after @ ..] => (Token::Byte(*byte), after),
    })
}

/// Parse a class after its bracket; returns it and what follows, `None` if it is not closed or has
/// an unknown name.
fn class(inside: &[u8]) -> Option<(Class, &[u8])> {
    let (negated, start) = match inside {
        [b'!' | b'^', after @ ..] => (true, after),
        _ => (false, inside),
    };
    let mut class_by_name = Class::default();
    let mut previous = None;
    let mut rest = start;
    while rest.len() == start.len() || *rest.first()? != b']' {
        rest = member(rest, &mut previous, &mut class_by_name)?;
    }
    let mut class = Class::default();
    (1..=u8::MAX)
        .filter(|&byte| byte != b'/' && class_by_name.holds(byte) != negated)
        .for_each(|byte| class.add(byte));
    Some((class, rest.get(1..)?))
}

/// Parse one part of a class, and add its bytes to `to`; returns what follows, `None` if malformed.
/// `previous` is the byte before, with which a range may begin.
fn member<'a>(rest: &'a [u8], previous: &mut Option<u8>, to: &mut Class) -> Option<&'a [u8]> {
    let first = previous.take();
    let (byte, after) = match (rest, first) {
        ([b'\\', after @ ..], _) => {
            let (byte, after) = after.split_first()?;
            (*byte, after)
        }
        ([b'-', end @ ..], Some(low)) if !matches!(end, [] | [b']', ..]) => {
            let end = end.strip_prefix(b"\\").unwrap_or(end);
            let (high, after) = end.split_first()?;
            (low..=*high).for_each(|byte| to.add(byte));
            return Some(after);
        }
        ([b'[', b':', name @ ..], _) => {
            let end = name.iter().position(|&byte| byte == b']')?;
            let (name, after) = name.split_at(end);
            if let Some(name) = name.strip_suffix(b":") {
                add_named(name, to)?;
                return after.get(1..);
            }
            (b'[', rest.get(1..)?)
        }
        (rest, _) => {
            let (byte, after) = rest.split_first()?;
            (*byte, after)
        }
    };
    to.add(byte);
    *previous = Some(byte);
    Some(after)
}

/// Add the bytes of a named class, as in `[:digit:]`; `None` if the name is unknown.
fn add_named(name: &[u8], to: &mut Class) -> Option<()> {
    let is_in: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    (0..=u8::MAX).filter(is_in).for_each(|byte| to.add(byte));
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Glob, Token};

    /// Match by definition, trying every place of every star.
    fn means(tokens: &[Token], text: &[u8]) -> bool {
        match (tokens, text) {
            ([], []) => true,
            ([Token::Star, after @ ..], _) => {
                let name = text.split(|&byte| byte == b'/').next().unwrap_or(text);
                (0..=name.len()).any(|at| means(after, text.split_at(at).1))
            }
            ([Token::TwoStars, after @ ..], _) => {
                (0..=text.len()).any(|at| means(after, text.split_at(at).1))
            }
            ([token, after @ ..], [byte, further @ ..]) => {
                token.takes(*byte) && means(after, further)
            }
            _ => false,
        }
    }

    fn matches(glob: &str, text: &str) -> bool {
        Glob::parse(glob.as_bytes()).is_some_and(|glob| glob.matches(text.as_bytes()))
    }

    #[test]
    fn what_is_incomplete_matches_nothing() {
        for glob in [
            "[",
            "[a",
            "[!",
            "[]",
            "a\\",
            "[\\",
            "[[:none:]]",
            "[[::]]",
            "[[:",
            "[a-",
        ] {
            assert!(Glob::parse(glob.as_bytes()).is_none(), "{glob}");
        }
    }

    #[test]
    fn classes() {
        for (glob, holds, lacks) in [
            ("[a-c]", "abc", "d-/"),
            ("[]-]", "]-", "[a"),
            ("[^a]", "b]", "a/"),
            ("[!]a]", "b[", "]a/"),
            ("[a\\]b]", "a]b", "\\"),
            ("[a-\\c]", "abc", "-\\"),
            ("[[:digit:][:upper:]x]", "0Ax", "ab:"),
            ("[[:]", "[:", "]"),
            ("[a-c-e]", "ae-", "d"),
            ("[--0]", "-.0", "/1"),
        ] {
            for (text, expected) in [(holds, true), (lacks, false)] {
                for letter in text.chars() {
                    let is_match = matches(glob, &letter.to_string());
                    assert_eq!(is_match, expected, "{glob} {letter}");
                }
            }
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let text = b"a".repeat(4000);
        for glob in [b"*a".repeat(100), b"**a".repeat(100)] {
            let glob = Glob::parse(&[glob, b"b".to_vec()].concat()).unwrap();
            assert!(!glob.matches(&text));
        }
    }

    proptest! {
        #[test]
        fn only_the_nearest_place_has_to_be_tried(
            glob in proptest::collection::vec(
                prop::sample::select(vec!["a", "b", "/", "*", "**", "?", "[ab]"]), 0..8),
            text in "[ab/]{0,10}",
        ) {
            let glob = Glob::parse(glob.concat().as_bytes()).unwrap();
            prop_assert_eq!(glob.matches(text.as_bytes()), means(&glob.tokens, text.as_bytes()));
        }

        #[test]
        fn any_bytes_are_a_glob_or_none(glob: Vec<u8>, text: Vec<u8>) {
            if let Some(glob) = Glob::parse(&glob) {
                glob.matches(&text);
            }
        }
    }
}
