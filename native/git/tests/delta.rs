//! Checks deltas: valid ones of this crate, and invalid ones.

use huai_git::delta::Delta;
use huai_git::deltify::deltify;
use huai_git::limits::OBJECT_BYTES;

/// Return the bytes 0 to 255, 300 times: 76,800 bytes.
fn base() -> Vec<u8> {
    (0..300).flat_map(|_| 0..=u8::MAX).collect()
}

/// Encode a size at the head of a delta.
fn size(mut value: u64) -> Vec<u8> {
    let mut encoded = Vec::new();
    while value > 0x7f {
        encoded.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    encoded.push(value.to_le_bytes()[0]);
    encoded
}

/// Make a delta for the base that claims to make `after` bytes.
fn delta(after: u64, steps: &[&[u8]]) -> Vec<u8> {
    [&size(76_800), &size(after), &steps.concat()[..]].concat()
}

/// Encode a copy of bytes of the base, in the long form.
fn copy(offset: u32, length: u32) -> Vec<u8> {
    let length = length.to_le_bytes();
    [&[0xff][..], &offset.to_le_bytes(), &length[..3]].concat()
}

/// Apply a delta to the base; returns the result, or the message of the error.
fn applied(delta: &[u8]) -> Result<Vec<u8>, String> {
    let mut result = b"what was there before".to_vec();
    Delta::parse(delta)
        .and_then(|delta| delta.apply(&base(), &mut result))
        .map_err(|error| error.to_string())?;
    Ok(result)
}

#[test]
fn copies_and_inserts() {
    let steps: [&[u8]; 3] = [&copy(256, 5), b"\x03new", &copy(0, 5)];
    let result = applied(&delta(13, &steps)).unwrap();
    assert_eq!(result, b"\0\x01\x02\x03\x04new\0\x01\x02\x03\x04");
}

#[test]
fn the_short_forms_of_a_copy() {
    // A zero byte of the offset or size is left out; a size of 0 is 64 KiB.
    assert_eq!(applied(&delta(2, &[b"\x91\x05\x02"])).unwrap(), b"\x05\x06");
    assert_eq!(
        applied(&delta(65_536, &[b"\x80"])).unwrap(),
        base()[..65_536]
    );
    assert_eq!(
        applied(&delta(1, &[b"\x92\x01\x01"])).unwrap(),
        base()[256..257]
    );
}

#[test]
fn nothing_from_nothing() {
    let mut result = Vec::new();
    Delta::parse(b"\0\0")
        .unwrap()
        .apply(b"", &mut result)
        .unwrap();
    assert!(result.is_empty());
}

#[test]
fn a_wrong_delta_is_refused() {
    let cases: [(Vec<u8>, &str); 14] = [
        (b"".to_vec(), "ends early"),
        (b"\x80".to_vec(), "ends early"),
        (size(76_800), "ends early"),
        (delta(5, &[b"\x91"]), "ends early"),
        (b"\x01\x00".to_vec(), "another size"),
        (delta(4, &[b"\x03abc"]), "another size than it says"),
        (delta(2, &[b"\x03abc"]), "another size than it says"),
        (delta(0, &[b"\x03abc"]), "another size than it says"),
        (delta(4, &[b"\x04abc"]), "impossible instruction"),
        (delta(4, &[b"\x00abc"]), "impossible instruction"),
        (delta(2, &[&copy(76_799, 2)]), "behind its base"),
        (delta(2, &[&copy(1 << 31, 2)]), "behind its base"),
        (delta(OBJECT_BYTES + 1, &[]), "limit"),
        ([&[0xff; 12][..], b"\x01"].concat(), "impossible length"),
    ];
    for (delta, reason) in cases {
        let message = applied(&delta).unwrap_err();
        assert!(message.contains(reason), "{message}: {reason}");
    }
}

#[test]
fn a_delta_that_goes_on_for_ever_is_stopped_at_its_size() {
    // 64 KiB for each byte: 64 GiB if all were applied.
    let message = applied(&delta(1000, &[&vec![0x80; 1 << 20]])).unwrap_err();
    assert!(message.contains("another size than it says"), "{message}");
}

/// Return the length of the delta between two texts, which is applied.
fn delta_length(base: &[u8], target: &[u8]) -> usize {
    let delta = deltify(base, target);
    let mut result = Vec::new();
    let applied = Delta::parse(&delta).and_then(|delta| delta.apply(base, &mut result));
    assert!(applied.is_ok());
    assert_eq!(result, target);
    delta.len()
}

/// Return a line of text for each number, and no two equal ones.
fn lines(numbers: std::ops::Range<u32>) -> Vec<u8> {
    let line = |number: u32| format!("name-{:x}\t{number}\n", number.wrapping_mul(0x9E37_79B9));
    numbers
        .flat_map(|number| line(number).into_bytes())
        .collect()
}

#[test]
fn what_is_the_same_is_copied() {
    let base = lines(0..1000);
    assert!(delta_length(&base, &base) < 16);
    let mut other = base.clone();
    other[5001] ^= 1;
    assert!(delta_length(&base, &other) < 24);
    other.drain(77..99);
    assert!(delta_length(&base, &other) < 40);
    other.splice(9000..9000, *b"between two of them");
    assert!(delta_length(&base, &other) < 80);
}

#[test]
fn nothing_in_common_and_nothing_at_all() {
    let (one, other) = (lines(0..100), lines(500..600));
    assert!(delta_length(&one, &other) < other.len() * 2);
    delta_length(&one, b"");
    delta_length(b"", &one);
    delta_length(b"", b"");
}

#[test]
fn long_copies_are_cut() {
    let base = vec![7; 0x30005];
    delta_length(&base, &base);
    delta_length(&base, &base[..0x10000]);
    let far = lines(0..2_000_000 / 20);
    delta_length(&far, &far[1_000_003..]);
}
