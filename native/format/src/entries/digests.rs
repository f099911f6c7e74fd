//! The raw digest column of a manifest: 32 bytes for each file, zeros where a digest is absent.

use crate::limits::DIGEST_BYTES;
use crate::shared::Shared;

/// Return true if a column is empty or has only zeros: no digest.
pub fn is_zero(digests: &[u8]) -> bool {
    digests.iter().fold(0, |all, byte| all | byte) == 0
}

/// Join the columns of texts, each given with its number of files; an empty one counts as zeros,
/// and if all are empty, so is the result.
pub fn join(columns: &[(usize, Shared)]) -> Shared {
    match columns {
        [(_, only)] => only.clone(),
        _ if columns.iter().all(|(_, digests)| digests.is_empty()) => Shared::default(),
        _ => {
            let mut joined = Vec::new();
            for (files, digests) in columns {
                let size = joined
                    .len()
                    .saturating_add(files.saturating_mul(DIGEST_BYTES));
                joined.extend_from_slice(digests);
                joined.resize(size, 0);
            }
            Shared::from(joined)
        }
    }
}
