//! SSH keys and signatures.

use huai_format::proof::signature;
use huai_format::proof::signature::{Ed25519Key, SEED_BYTES, Signer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::sys::errors::refuse;

/// Return a public key without its comment; a `FormatError` unless it is Ed25519.
#[pyfunction]
pub(crate) fn parse_public_key(line: &str) -> PyResult<String> {
    Ok(Ed25519Key::parse(line).map_err(refuse)?.to_string())
}

/// Return the public key that signed `message`, trusted or not; a `FormatError` for any other signature.
#[pyfunction]
pub(crate) fn verify_signature(
    namespace: &str,
    message: &[u8],
    armored: &[u8],
) -> PyResult<String> {
    let key = signature::verify(namespace, message, armored).map_err(refuse)?;
    Ok(key.to_string())
}

/// A private key, not encrypted.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct PrivateKey(Signer);

#[pymethods]
impl PrivateKey {
    #[new]
    fn new(file: &[u8]) -> PyResult<Self> {
        Ok(Self(Signer::parse(file).map_err(refuse)?))
    }

    /// Make a key from a seed of 32 bytes; a `ValueError` for another length.
    #[staticmethod]
    fn generate(seed: &[u8], comment: &str) -> PyResult<Self> {
        let seed: &[u8; SEED_BYTES] = seed
            .try_into()
            .map_err(|_| PyValueError::new_err("a seed has 32 bytes"))?;
        Ok(Self(Signer::new(seed, comment).map_err(refuse)?))
    }

    #[getter]
    fn public(&self) -> PyResult<String> {
        Ok(self.0.public().map_err(refuse)?.to_string())
    }

    fn encode(&self) -> PyResult<String> {
        self.0.encode().map_err(refuse)
    }

    fn sign(&self, namespace: &str, message: &[u8]) -> PyResult<String> {
        self.0.sign(namespace, message).map_err(refuse)
    }
}
