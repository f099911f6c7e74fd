//! The engine as the Python module `huai_native._native`.
//!
//! Converts, waits, converts: no policy, and no loop over entries.

mod arrived;
mod attr_tree;
mod block_index;
mod candidates;
mod change_list;
mod columns;
mod compare;
mod connected;
mod contents;
mod copy;
mod digests;
mod entries;
mod entry;
mod errors;
mod filelist;
mod filter;
mod found_digests;
mod frame;
mod git_tree;
mod guarded;
mod hardlinks;
mod hash;
mod image;
mod layout;
mod listing_hash;
mod operations;
mod order;
mod pace;
mod pack_writer;
mod packs;
mod plan;
mod reader;
mod regular;
mod remove;
mod rows;
mod run;
mod scan;
mod scrub;
mod signature;
mod snapshot;
mod stage;
mod touched;
mod tree;
mod tree_comparison;
mod undigested;
mod wait;
mod watch;

/// What runs once for each entry.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::arrived::{Arrived, find_twins};
    #[pymodule_export]
    use crate::attr_tree::Maker;
    #[pymodule_export]
    use crate::block_index::{BlockIndex, BlockPlaces, patch_file, reserve_patch};
    #[pymodule_export]
    use crate::candidates::{Candidates, Renames};
    #[pymodule_export]
    use crate::change_list::ChangeList;
    #[pymodule_export]
    use crate::compare::{Comparison, check_hardlinks, count_changes};
    #[pymodule_export]
    use crate::connected::find_missing;
    #[pymodule_export]
    use crate::contents::Contents;
    #[pymodule_export]
    use crate::copy::{copy_files, copy_twins};
    #[pymodule_export]
    use crate::digests::{Digests, ListedDigests};
    #[pymodule_export]
    use crate::entries::{Entries, leaf_totals};
    #[pymodule_export]
    use crate::filelist::{FileList, Ls};
    #[pymodule_export]
    use crate::filter::Filter;
    #[pymodule_export]
    use crate::found_digests::FoundDigests;
    #[pymodule_export]
    use crate::git_tree::{decode_tree, encode_tree, object_id};
    #[pymodule_export]
    use crate::hardlinks::HardlinkGroups;
    #[pymodule_export]
    use crate::hash::{Blake3, hash_file};
    #[pymodule_export]
    use crate::image::ImageBuilder;
    #[pymodule_export]
    use crate::layout::Layout;
    #[pymodule_export]
    use crate::listing_hash::ListingHashes;
    #[pymodule_export]
    use crate::order::{PublishOrder, PublishPatterns};
    #[pymodule_export]
    use crate::pace::Pace;
    #[pymodule_export]
    use crate::pack_writer::PackWriter;
    #[pymodule_export]
    use crate::packs::{Packs, ResolvedPack, pack_index, resolve_pack};
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::regular::open_regular;
    #[pymodule_export]
    use crate::remove::remove_all;
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::scan::Scan;
    #[pymodule_export]
    use crate::scrub::{Digested, DigestedBatch, Scrub};
    #[pymodule_export]
    use crate::signature::{PrivateKey, parse_public_key, verify_signature};
    #[pymodule_export]
    use crate::snapshot::{EntryLimit, Level, OwnDirectory, Walk};
    #[pymodule_export]
    use crate::stage::{may_compare, verify_arrived, write_back};
    #[pymodule_export]
    use crate::touched::Looked;
    #[pymodule_export]
    use crate::tree::{Tree, rename_noreplace};
    #[pymodule_export]
    use crate::tree_comparison::TreeComparison;
    #[pymodule_export]
    use crate::undigested::Undigested;
    #[pymodule_export]
    use crate::watch::TreeWatch;

    use pyo3::prelude::*;
    use pyo3::types::PySequence;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        PySequence::register::<Rows>(module.py())?;
        PySequence::register::<Plan>(module.py())
    }
}
