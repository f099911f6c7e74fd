//! The entries that a scan always leaves out.  The rules are explained in
//! `huai_server/scan/exclude.py`.

/// The number of random characters at the end of rsync's temporary names.
const RANDOM: usize = 6;
/// The permissions that rsync does not grant until the file is complete.
const NOT_OWNER: u32 = 0o077;

/// Return true if a regular file is one of rsync's temporary files: `.NAME.XXXXXX`, to which only
/// its owner has access.
pub(crate) fn is_unfinished(name: &[u8], mode: u32) -> bool {
    let [b'.', rest @ ..] = name else {
        return false;
    };
    let Some((stem, random)) = rest.split_last_chunk::<RANDOM>() else {
        return false;
    };
    mode & NOT_OWNER == 0
        && random.iter().all(u8::is_ascii_alphanumeric)
        && matches!(stem, [_, .., b'.'])
}
