//! Proofs of a snapshot: hashes of listings, and signatures.

pub mod listing_hash;
pub mod signature;
