//! The engine as the Python module `huai_native._native`.
//!
//! Converts, waits, converts: no policy, and no loop over entries.  `_native.pyi` describes the
//! calls.  A group of modules uses those above it here, never those below.

#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments are converted from Python"
)]

mod sys;

mod packs;
mod signature;

mod snapshots;

mod scan;

mod digests;
mod export;
mod hashing;

mod commit;
mod source;

mod candidates;

mod stage;

mod tree;

/// The functions that run once for each entry.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::candidates::order::{PublishOrder, PublishPatterns};
    #[pymodule_export]
    use crate::candidates::plan::Plan;
    #[pymodule_export]
    use crate::candidates::rows::Rows;
    #[pymodule_export]
    use crate::candidates::table::{Candidates, Renames};
    #[pymodule_export]
    use crate::candidates::tree_comparison::TreeComparison;
    #[pymodule_export]
    use crate::commit::{TreeReader, relink};
    #[pymodule_export]
    use crate::digests::found_digests::FoundDigests;
    #[pymodule_export]
    use crate::digests::undigested::find_undigested;
    #[pymodule_export]
    use crate::export::attr_tree::Maker;
    #[pymodule_export]
    use crate::export::filelist::FileList;
    #[pymodule_export]
    use crate::export::image::write_image;
    #[pymodule_export]
    use crate::hashing::block_index::{BlockIndex, patch_file, reserve_patch};
    #[pymodule_export]
    use crate::hashing::hash::{Blake3, hash_file};
    #[pymodule_export]
    use crate::hashing::scrub::{Digested, Scrub};
    #[pymodule_export]
    use crate::packs::git_tree::{decode_tree, encode_tree, object_id};
    #[pymodule_export]
    use crate::packs::read::Packs;
    #[pymodule_export]
    use crate::packs::received::{check_connected, install_pack};
    #[pymodule_export]
    use crate::packs::writer::PackWriter;
    #[pymodule_export]
    use crate::scan::change_list::ChangeList;
    #[pymodule_export]
    use crate::scan::tree_watch::TreeWatch;
    #[pymodule_export]
    use crate::signature::{PrivateKey, parse_public_key, verify_signature};
    #[pymodule_export]
    use crate::snapshots::bundle::BundleReader;
    #[pymodule_export]
    use crate::snapshots::compare::{Comparison, check_hardlinks, count_changes};
    #[pymodule_export]
    use crate::snapshots::entries::Entries;
    #[pymodule_export]
    use crate::snapshots::filter::Filter;
    #[pymodule_export]
    use crate::snapshots::listing_hash::ListingHashes;
    #[pymodule_export]
    use crate::snapshots::listings::write_tree;
    #[pymodule_export]
    use crate::snapshots::missing::MissingObjects;
    #[pymodule_export]
    use crate::snapshots::name_index::NameIndex;
    #[pymodule_export]
    use crate::snapshots::shards::plan_shards;
    #[pymodule_export]
    use crate::snapshots::snapshot::{Lookup, Walk, read_own_directory};
    #[pymodule_export]
    use crate::snapshots::subtree_totals::SubtreeTotals;
    #[pymodule_export]
    use crate::source::{EntryList, RsyncList, TextList, compare_file_lists, read_recent};
    #[pymodule_export]
    use crate::stage::arrived::{ArrivedFiles, find_twins};
    #[pymodule_export]
    use crate::stage::bundle::BundleWriter;
    #[pymodule_export]
    use crate::stage::copy::{copy_files, copy_twins};
    #[pymodule_export]
    use crate::stage::requests::request_names;
    #[pymodule_export]
    use crate::stage::verify::{comparable, verify_arrived, write_back};
    #[pymodule_export]
    use crate::sys::pace::Pace;
    #[pymodule_export]
    use crate::sys::progress::progress_so_far;
    #[pymodule_export]
    use crate::sys::regular::open_regular;
    #[pymodule_export]
    use crate::sys::remove::remove_all;
    #[pymodule_export]
    use crate::tree::{Tree, rename_noreplace};

    use pyo3::prelude::*;
    use pyo3::types::PySequence;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        PySequence::register::<Rows>(module.py())?;
        PySequence::register::<Plan>(module.py())
    }
}
