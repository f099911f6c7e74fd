//! Encodes numbers in as few bytes as they need.

use huai_git::cursor::Cursor;

/// Encode a positive or negative step as a number that is small if the step is.
pub(super) fn folded(now: u64, before: u64) -> u64 {
    let step = now.wrapping_sub(before);
    if step >> 63 == 0 {
        step << 1
    } else {
        !(step << 1)
    }
}

/// Return the number after a step from `before`, given the result of `folded`.
pub(super) fn unfolded(folded: u64, before: u64) -> u64 {
    let step = if folded & 1 == 0 {
        folded >> 1
    } else {
        !(folded >> 1)
    };
    before.wrapping_add(step)
}

/// Append seven bits per byte, lowest first; the highest bit of a byte means that more follow.
pub(super) fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Take the next number; `None` if the bytes end early or are malformed.
pub(super) fn take_number(from: &mut Cursor<'_>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = from.byte()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_come_out_again() {
        let edges = [0, 1, 0x7f, 0x80, 1 << 32, u64::MAX - 1, u64::MAX];
        for now in edges {
            for before in edges {
                let mut bytes = Vec::new();
                put_number(&mut bytes, folded(now, before));
                let mut from = Cursor::new(&bytes);
                let decoded = take_number(&mut from).unwrap();
                assert_eq!(unfolded(decoded, before), now);
                assert!(from.is_empty());
            }
        }
    }
}
