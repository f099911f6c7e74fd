//! Checks that any bytes are accepted or refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use huai_format::entries::{Leaves, decode_directory, has_leaf};
use huai_format::escape::{escape, unescape};
use huai_format::path::{RelPath, path_order};
use huai_format::shared::Shared;
use huai_format::snapshots::{Manifest, OwnDirectory};
use huai_git::cursor::Cursor;
use huai_git::delta::Delta;
use huai_git::deltify::deltify;
use huai_git::limits::OBJECT_BYTES;
use huai_git::object::{Form, Kind, PackedForm, put_header, take_header};
use huai_git::oid::Oid;
use huai_git::tree::decode_tree;
use proptest::collection::vec;
use proptest::prelude::*;

/// Make bytes that are lines more often than by chance.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let letter = proptest::sample::select(b"ab\t\t\n\n0019./->\\xmughz\x00\x7f\xff".to_vec());
    vec(letter, 0..80)
}

/// Make lines of files: all but the last are canonical, and names grow.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    (vec((0..3_u8, any::<u16>()), 0..40), text()).prop_map(|(kinds, rest)| {
        let mut lines = Vec::new();
        for (number, (kind, size)) in kinds.into_iter().enumerate() {
            let second = if kind == 0 {
                ">t".to_owned()
            } else {
                size.to_string()
            };
            lines.extend_from_slice(format!("f{number:03}\\x09\t{second}\t{size}\n").as_bytes());
        }
        lines.extend_from_slice(&rest);
        lines
    })
}

/// Make two similar texts: the second consists of parts of the first.
fn related() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let part = (any::<usize>(), 0..400_usize, vec(any::<u8>(), 0..40));
    (vec(0..4_u8, 0..3000), vec(part, 0..8)).prop_map(|(base, parts)| {
        let mut other = Vec::new();
        for (at, size, new) in parts {
            let at = at.checked_rem(base.len()).unwrap_or_default();
            other.extend(base[at..].iter().take(size));
            other.extend(new);
        }
        (base, other)
    })
}

proptest! {
    #[test]
    fn a_delta_makes_what_it_was_made_from((base, other) in related()) {
        let delta = deltify(&base, &other);
        let mut result = Vec::new();
        Delta::parse(&delta).unwrap().apply(&base, &mut result).unwrap();
        prop_assert_eq!(result, other);
    }

    #[test]
    fn a_header_says_what_was_written(
        kind in prop::sample::select(vec![Kind::Commit, Kind::Tree, Kind::Blob]),
        base: Option<[u8; 20]>,
        size in 0..=OBJECT_BYTES,
    ) {
        let base = base.map(Oid::new);
        let mut header = Vec::new();
        put_header(base.map_or(PackedForm::Whole(kind), PackedForm::From), size, &mut header);
        let mut cursor = Cursor::new(&header);
        let (form, told) = take_header(&mut cursor).unwrap();
        prop_assert_eq!(form, base.map_or(Form::Whole(kind), Form::OnName));
        prop_assert_eq!(told as u64, size);
        prop_assert!(cursor.is_empty());
    }

    #[test]
    fn escaping_has_an_inverse(raw in vec(any::<u8>(), 0..40)) {
        let text = escape(&raw);
        prop_assert_eq!(&*unescape(&text).unwrap(), &raw[..]);
    }

    #[test]
    fn unescaping_is_canonical(text in text()) {
        if let Ok(raw) = unescape(&text) {
            prop_assert_eq!(&*escape(&raw), &text[..]);
        }
    }

    #[test]
    fn leaves_are_sorted_or_refused(text in lines(), column in vec(any::<u8>(), 0..100)) {
        let root = RelPath::root();
        let mut last = Vec::new();
        for entry in Leaves::new(&root, &text, &column).flatten() {
            prop_assert!(last < entry.name.to_vec());
            last = entry.name.to_vec();
        }
        let _ = has_leaf(&text, b"f001\t");
    }

    #[test]
    fn a_bookmark_goes_on_where_it_was_set(text in lines(), at in 0..50_usize) {
        let root = RelPath::root();
        let column = vec![7; 32 * text.split(|&byte| byte == b'\n').count()];
        let all_leaves: Vec<String> = Leaves::new(&root, &text, &column).map(|e| format!("{e:?}")).collect();
        let mut first = Leaves::new(&root, &text, &column);
        let mut parts: Vec<String> = first.by_ref().take(at).map(|e| format!("{e:?}")).collect();
        let failed = parts.len() < at;
        let bookmark = first.bookmark();
        if !failed && !parts.iter().any(|part| part.starts_with("Err")) {
            let rest = Leaves::resume(&root, &text, &column, &bookmark);
            parts.extend(rest.map(|e| format!("{e:?}")));
        }
        prop_assert_eq!(all_leaves, parts);
    }

    #[test]
    fn attributes_are_read_or_refused(text in text()) {
        let _ = decode_directory(&RelPath::root(), &text);
    }

    #[test]
    fn a_manifest_is_its_blocks(text in text(), column in vec(any::<u8>(), 0..70)) {
        let shared = Shared::from([b"./\t0\n", &text[..]].concat());
        let _ = Manifest::decode(&shared, &Shared::from(column));
        if let Ok(found) = Manifest::decode(&shared, &Shared::default()) {
            prop_assert!(found.is_first);
            let mut again = [b"./\t", &*found.own.attributes, b"\n", &*found.own.leaves].concat();
            for block in found.inline.iter().flat_map(|each| &each.blocks) {
                again.extend_from_slice(&block.relative);
                again.extend_from_slice(b"/\t");
                again.extend_from_slice(&block.attributes);
                again.push(b'\n');
                again.extend_from_slice(&block.leaves);
            }
            prop_assert_eq!(&again[..], &*shared);
            let lines = shared.split_inclusive(|&byte| byte == b'\n').count();
            prop_assert_eq!(found.entries(), lines);
        }
    }

    #[test]
    fn trees_are_read_or_refused(items in vec((any::<bool>(), "[a-c=/ -]{0,3}"), 0..6), cut in 0..9_usize) {
        let mut data = Vec::new();
        for (is_tree, name) in items {
            data.extend_from_slice(if is_tree { b"40000 " } else { b"100644 " });
            data.extend_from_slice(name.as_bytes());
            data.push(0);
            data.extend_from_slice(&[9; 20]);
        }
        data.truncate(data.len().saturating_sub(cut));
        if let Ok(found) = decode_tree(&data) {
            let sizes = found.iter().map(|item| item.name.len() + if item.is_tree { 27 } else { 28 });
            prop_assert_eq!(sizes.sum::<usize>(), data.len());
        }
        let _ = OwnDirectory::decode(RelPath::root(), &data);
    }

    #[test]
    fn paths_sort_by_components(one in "[a-c/.]{0,8}", other in "[a-c/.]{0,8}") {
        let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        let order = path_order(one.as_bytes(), other.as_bytes());
        prop_assert_eq!(order, parts(&one).cmp(&parts(&other)));
    }
}
