//! Changes that file systems list: `zfs diff -FH` and `btrfs receive --dump`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use huai_export::change_list::{ChangeList, Spelling};

/// Read a list of a module at /tank/m; `place` is its place in a snapshot.
fn read(spelling: &str, place: &str, list: &[u8]) -> ChangeList {
    let mut roots = vec![b"/tank/m/".to_vec()];
    roots.extend((!place.is_empty()).then(|| place.as_bytes().to_vec()));
    let mut read = ChangeList::new(&roots);
    read.begin_source(Spelling::parse(spelling).unwrap());
    read.feed(list);
    read.end_source();
    read
}

/// Return the paths: `/**` behind those with everything below, `?` behind those that may be missing.
fn paths(list: ChangeList) -> Vec<String> {
    let touched = list.into_touched().into_iter().map(|each| {
        let path = String::from_utf8_lossy(each.path.as_bytes()).into_owned();
        let below = if each.all_below { "/**" } else { "" };
        path + below + if each.perhaps { "?" } else { "" }
    });
    touched.collect()
}

#[test]
fn zfs_escapes_names_and_separates_by_tabs() {
    let list = b"M\t/\t/tank/m/
-\tF\t/tank/m/gone
+\t@\t/tank/m/a\\0040b\\0134\\0303\\0251\\0012
R\t/\t/tank/m/old\t/tank/m/new
M\tF\t/tank/m/linked\t(+1)
+\tF\t/tank/m/f/<xattrdir>/user.x
-\tF\t/tank/m(on_delete_queue)
M\t/tank/m/without_type
";
    let read = read("zfs-diff", "", list);
    assert_eq!((read.refused().0, read.is_cut()), (0, false));
    let expected = [
        "",
        "a b\\é\n?",
        "a\\0040b\\0134\\0303\\0251\\0012?",
        "gone",
        "linked",
        "new/**",
        "old/**",
        "without_type",
    ];
    assert_eq!(paths(read), expected);
}

#[test]
fn names_of_zfs_without_escapes() {
    let list = "+\tF\t/tank/m/é ü\n+\tF\t/tank/m/a\\b\n+\tF\t/tank/m/a\\0990\n";
    let read = read("zfs-diff", "", list.as_bytes());
    assert_eq!(paths(read), ["a\\0990", "a\\b", "é ü"]);
}

#[test]
fn zfs_of_other_trees_and_of_no_form() {
    let list = b"M\tF\t/tank/m2/a
M\tF\t/tank/m/../a
R\tF\t/tank/m/only_one
R\tF\t/tank/m/a\t/tank/m/b\t/tank/m/c
X\tF\t/tank/m/a
M
\t\t
/tank/m/a
M\tF\t/tank/m/with\ttab
";
    let read = read("zfs-diff", "", list);
    assert_eq!(read.refused().0, 9);
    assert_eq!(paths(read), [""; 0]);
}

const DUMP: &[u8] = b"snapshot        ./s\\ 2                           uuid=x transid=8
mkdir           ./s\\ 2/o273-8-0
rename          ./s\\ 2/d                          dest=./s\\ 2/o273-8-0/dd
rename          ./s\\ 2/o273-8-0                   dest=./s\\ 2/n\\303\\251\\n
link            ./s\\ 2/old/t\\ w\\to\\nx\\\\             dest=old/1
symlink         ./s\\ 2/o270-8-0                   dest=a\\ b
update_extent   ./s\\ 2/dest=x                        offset=0 len=5
clone           ./s\\ 2/cloned offset=0 len=5 from=./s\\ 2/other clone_offset=0
set_xattr       ./s\\ 2/x name=user.a data=b len=1
utimes          ./s\\ 2/                           atime=x mtime=x ctime=x
";

#[test]
fn btrfs_names_the_snapshot_and_escapes_as_c_does() {
    let read = read("btrfs-dump", "", DUMP);
    assert_eq!((read.refused().0, read.is_cut()), (0, false));
    let expected = [
        "",
        "cloned",
        "d/**?",
        "dest=x",
        "né\n/**?",
        "o270-8-0?",
        "o273-8-0/**?",
        "o273-8-0/dd/**?",
        "old/1?",
        "old/t w\to\nx\\?",
        "x",
    ];
    assert_eq!(paths(read), expected);
}

#[test]
fn a_module_below_the_top_of_a_snapshot() {
    let list = b"subvol ./s uuid=x transid=1
write ./s/srv/m/a offset=0 len=1
write ./s/srv/m2/a offset=0 len=1
rename ./s/srv/m/gone dest=./s/elsewhere
";
    let read = read("btrfs-dump", "srv/m", list);
    assert_eq!(read.refused().0, 1);
    assert_eq!(paths(read), ["a", "gone/**?"]);
}

#[test]
fn btrfs_of_no_form() {
    let list = b"chmod ./s/before_its_snapshot mode=600
snapshot ./s uuid=x
chmod ./s2/a mode=600
chmod ./s/../a mode=600
chmod ./s/a\\q mode=600
chmod ./s/a\\
chmod
rename ./s/a
rename ./s/a from=./s/b
rename ./s/a dest=./other/b
rename ./s/a dest=./s/b c
link ./s/a dest=b c
explode ./s/a
at INFO: some message of the program
";
    let read = read("btrfs-dump", "", list);
    assert_eq!((read.refused().0, read.is_cut()), (13, false));
    assert_eq!(paths(read), [""; 0]);
}

#[test]
fn the_end_of_a_cut_line_is_not_trusted() {
    for end in 1..DUMP.len() {
        let read = read("btrfs-dump", "", DUMP.get(..end).unwrap());
        assert_eq!(read.refused().0, 0, "{end}");
        assert_eq!(read.is_cut(), DUMP[end - 1] != b'\n', "{end}");
    }
}
