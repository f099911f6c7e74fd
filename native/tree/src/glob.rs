//! Globs as fnmatch(3) has them, on bytes, whatever the locale.
//!
//! `*`, `?`, `[...]` with ranges and classes, `\` before what is meant literally.  A `[` without
//! its end stands for itself.  Takes time in the product of both lengths at most.

/// Whether all of `text` matches; with `path`, only a slash matches a slash.
pub(crate) fn matches(glob: &[u8], text: &[u8], path: bool) -> bool {
    let (mut pattern, mut rest) = (glob, text);
    // Where to go on if what follows the last star does not match: one byte further.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', after @ ..] = pattern {
            pattern = after;
            star = Some((after, rest));
            continue;
        }
        match (pattern.is_empty(), rest.split_first()) {
            (true, None) => return true,
            (false, Some((byte, further))) => {
                if let Some(after) = one(pattern, *byte, path) {
                    (pattern, rest) = (after, further);
                    continue;
                }
            }
            _ => {}
        }
        let Some((after, from)) = star else {
            return false;
        };
        match from.split_first() {
            Some((byte, further)) if !(path && *byte == b'/') => {
                star = Some((after, further));
                (pattern, rest) = (after, further);
            }
            _ => return false,
        }
    }
}

/// What follows in the pattern if its first element, no star, matches `byte`.
fn one(pattern: &[u8], byte: u8, path: bool) -> Option<&[u8]> {
    let special = !(path && byte == b'/');
    match pattern {
        [b'?', after @ ..] => special.then_some(after),
        [b'[', inside @ ..] => match bracket(inside, byte) {
            Bracket::Complete { matched, after } => (special && matched).then_some(after),
            Bracket::Open => (byte == b'[').then_some(inside),
            Bracket::Senseless => None,
        },
        [b'\\', literal, after @ ..] | [literal, after @ ..] => {
            (*literal == byte && pattern != b"\\").then_some(after)
        }
        [] => None,
    }
}

enum Bracket<'a> {
    Complete {
        matched: bool,
        after: &'a [u8],
    },
    /// It has no end.
    Open,
    /// It names a class that there is not, or ends within a range.
    Senseless,
}

fn bracket(inside: &[u8], byte: u8) -> Bracket<'_> {
    let (negated, mut rest) = match inside {
        [b'!' | b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut matched = false;
    let mut first = true;
    loop {
        rest = match rest {
            [] => return Bracket::Open,
            [b']', after @ ..] if !first => {
                return Bracket::Complete {
                    matched: matched != negated,
                    after,
                };
            }
            [b'[', b':', named @ ..] if class_name(named).is_some() => {
                let (name, after) = class_name(named).unwrap_or_default();
                match is_in_class(name, byte) {
                    Some(within) => matched |= within,
                    None => return Bracket::Senseless,
                }
                after
            }
            _ => {
                let Some((low, after)) = member(rest) else {
                    return Bracket::Open;
                };
                let (high, after) = match after {
                    [b'-'] => return Bracket::Senseless,
                    [b'-', end @ ..] if end.first() != Some(&b']') => match member(end) {
                        Some(found) => found,
                        None => return Bracket::Open,
                    },
                    _ => (low, after),
                };
                matched |= (low..=high).contains(&byte);
                after
            }
        };
        first = false;
    }
}

/// One byte of a bracket: itself, escaped, or as `[.x.]` and `[=x=]`.
fn member(rest: &[u8]) -> Option<(u8, &[u8])> {
    match rest {
        [b'\\'] | [] => None,
        [b'\\', byte, after @ ..]
        | [b'[', b'.', byte, b'.', b']', after @ ..]
        | [b'[', b'=', byte, b'=', b']', after @ ..]
        | [byte, after @ ..] => Some((*byte, after)),
    }
}

/// The name before `:]`, if there is one, and what follows.
fn class_name(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = rest
        .iter()
        .take_while(|byte| byte.is_ascii_lowercase())
        .count();
    let (name, after) = rest.split_at(length);
    match after {
        [b':', b']', after @ ..] => Some((name, after)),
        _ => None,
    }
}

fn is_in_class(name: &[u8], byte: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => matches!(byte, b' '..=b'~'),
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_takes_as_much_as_it_needs() {
        for (glob, text, path, expected) in [
            ("*", "", false, true),
            ("*a*b", "xaxxb", false, true),
            ("*a*b", "xb", false, false),
            ("*.tar.*", "a.tar.tar.gz", false, true),
            ("d/*", "d/e/f", true, false),
            ("d/*", "d/e/f", false, true),
            ("*/*/f", "d/e/f", true, true),
        ] {
            assert_eq!(
                matches(glob.as_bytes(), text.as_bytes(), path),
                expected,
                "{glob} {text}"
            );
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let glob = b"*a".repeat(100);
        assert!(!matches(
            &[&glob[..], b"b"].concat(),
            &b"a".repeat(4000),
            false
        ));
    }
}
