//! Reads JSON (RFC 8259) from the front of a line; values that are not needed are skipped.

use huai_git::error::{Error, Result};

const DEPTH: u32 = 16;

/// The rest of a line.
#[derive(Debug)]
pub(crate) struct Json<'a>(&'a [u8]);

impl<'a> Json<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// Take an object: `member` is called with each key, and takes the value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.expect(b'{')?;
        if self.accept(b'}') {
            return Ok(());
        }
        loop {
            let key = self.text()?;
            self.expect(b':')?;
            member(self, &key)?;
            if self.accept(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Take a text, or `null`, which gives `None`.
    pub(crate) fn optional_text(&mut self) -> Result<Option<Vec<u8>>> {
        if self.is_text() {
            return self.text().map(Some);
        }
        match self.word()? {
            b"null" => Ok(None),
            _ => Err(malformed()),
        }
    }

    /// Return true if a text follows.
    pub(crate) fn is_text(&mut self) -> bool {
        self.peek() == Some(b'"')
    }

    /// Return true if an object follows.
    pub(crate) fn is_object(&mut self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Take a number, `true`, `false` or `null`, as its bytes.
    pub(crate) fn word(&mut self) -> Result<&'a [u8]> {
        self.skip_space();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let end = self.0.iter().position(|byte| !is_part(byte));
        let (word, rest) = self
            .0
            .split_at_checked(end.unwrap_or(self.0.len()))
            .ok_or_else(malformed)?;
        let is_word = matches!(word, b"true" | b"false" | b"null");
        let is_number = matches!(word, [b'-', b'0'..=b'9', ..] | [b'0'..=b'9', ..]);
        if !is_word && !is_number {
            return Err(malformed());
        }
        self.0 = rest;
        Ok(word)
    }

    /// Take any value.
    pub(crate) fn skip(&mut self) -> Result<()> {
        self.skip_below(DEPTH)
    }

    fn skip_below(&mut self, depth: u32) -> Result<()> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Error::new("the list has values that are nested too deeply"));
        };
        match self.peek() {
            Some(b'"') => self.text().map(drop),
            Some(b'{') => self.object(|json, _| json.skip_below(depth)),
            Some(b'[') => {
                self.expect(b'[')?;
                if self.accept(b']') {
                    return Ok(());
                }
                loop {
                    self.skip_below(depth)?;
                    if self.accept(b']') {
                        return Ok(());
                    }
                    self.expect(b',')?;
                }
            }
            _ => self.word().map(drop),
        }
    }

    /// Take one byte after space, if it is this one.
    pub(crate) fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.0 = self.0.get(1..).unwrap_or_default();
        }
        is_next
    }

    /// Return true if only space is left.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.peek().is_none()
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.accept(byte) {
            Ok(())
        } else {
            Err(malformed())
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.0.first().copied()
    }

    fn skip_space(&mut self) {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let begin = self.0.iter().position(|byte| !is_space(byte));
        self.0 = self
            .0
            .get(begin.unwrap_or(self.0.len())..)
            .unwrap_or_default();
    }

    /// Take a text as UTF-8.  A lone surrogate from U+DC80 to U+DCFF is the byte that Python's
    /// `surrogateescape` makes it of.
    pub(crate) fn text(&mut self) -> Result<Vec<u8>> {
        self.expect(b'"')?;
        let mut text = Vec::new();
        loop {
            let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            let end = self.0.iter().position(is_end).ok_or_else(malformed)?;
            let (plain, rest) = self.0.split_at_checked(end).ok_or_else(malformed)?;
            text.extend_from_slice(plain);
            self.0 = rest.get(1..).unwrap_or_default();
            match rest.first() {
                Some(b'"') => return Ok(text),
                Some(b'\\') => self.escape(&mut text)?,
                _ => return Err(malformed()),
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<()> {
        let (byte, rest) = self.0.split_first().ok_or_else(malformed)?;
        self.0 = rest;
        text.push(match byte {
            b'"' | b'\\' | b'/' => *byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.code_point(text),
            _ => return Err(malformed()),
        });
        Ok(())
    }

    fn code_point(&mut self, text: &mut Vec<u8>) -> Result<()> {
        let unit = self.code_unit()?;
        let low = unit & 0x3ff;
        let code = match unit {
            0xd800..=0xdbff => {
                self.0 = self.0.strip_prefix(b"\\u").ok_or_else(malformed)?;
                let next = self.code_unit()?;
                if !(0xdc00..=0xdfff).contains(&next) {
                    return Err(malformed());
                }
                0x1_0000_u32.saturating_add((low << 10) | (next & 0x3ff))
            }
            0xdc80..=0xdcff => {
                text.extend(u8::try_from(unit & 0xff));
                return Ok(());
            }
            _ => unit,
        };
        let code = char::from_u32(code).ok_or_else(malformed)?;
        text.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn code_unit(&mut self) -> Result<u32> {
        let (digits, rest) = self.0.split_at_checked(4).ok_or_else(malformed)?;
        self.0 = rest;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex);
        digits
            .and_then(|it| u32::from_str_radix(it, 16).ok())
            .ok_or_else(malformed)
    }
}

pub(crate) fn malformed() -> Error {
    Error::new("this is not an object of JSON")
}
