//! SSH keys and signatures (OpenSSH's PROTOCOL.key and PROTOCOL.sshsig), Ed25519 with SHA-512 only.
//!
//! Only this file uses the crate.  Finds the signer, and does not decide if it is trusted.

use std::fmt;

use huai_git::error::{Error, Result};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::public::{Ed25519PublicKey, KeyData};
use ssh_key::{HashAlg, LineEnding, PrivateKey, PublicKey, SshSig};

use crate::limits::{KEY_BYTES, SIGNATURE_BYTES};

/// The bytes of the seed of a private key.
pub const SEED_BYTES: usize = 32;

/// A public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ed25519Key(Ed25519PublicKey);

impl Ed25519Key {
    /// Parse a line of an `authorized_keys` file without options; a comment may follow the key.  An
    /// error for another type of key than Ed25519.
    pub fn parse(line: &str) -> Result<Self> {
        if line.len() > KEY_BYTES {
            return Err(Error::new("a public key that is too long"));
        }
        let parsed = PublicKey::from_openssh(line.trim())
            .map_err(|error| Error::new(format!("not a public key of OpenSSH: {error}")))?;
        Self::of(parsed.key_data())
    }

    /// Return the key of this data; an error unless it is Ed25519.
    fn of(data: &KeyData) -> Result<Self> {
        match data.ed25519() {
            Some(key) => Ok(Self(*key)),
            None => Err(Error::new(format!(
                "a key of type {}; only ssh-ed25519 is known",
                data.algorithm().as_str()
            ))),
        }
    }
}

impl fmt::Display for Ed25519Key {
    /// Format the key for `parse`, without a comment.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = PublicKey::from(self.0)
            .to_openssh()
            .map_err(|_| fmt::Error)?;
        to.write_str(line.trim_end())
    }
}

/// Return the signer of `message`; an error for a signature that is malformed, not made by an
/// Ed25519 key with SHA-512, or of another message or `namespace`.
///
/// Each signature has one spelling, that of ssh-keygen; the final line end may be missing.
pub fn verify(namespace: &str, message: &[u8], armored: &[u8]) -> Result<Ed25519Key> {
    if armored.len() > SIGNATURE_BYTES {
        return Err(Error::new("a signature that is too long"));
    }
    let signature = SshSig::from_pem(armored)
        .map_err(|error| Error::new(format!("not a signature of OpenSSH: {error}")))?;
    let key = Ed25519Key::of(signature.public_key())?;
    if signature.hash_alg() != HashAlg::Sha512 || signature.version() != SshSig::VERSION {
        return Err(Error::new("a signature that is not made with SHA-512"));
    }
    let spelt = signature
        .to_pem(LineEnding::LF)
        .map_err(|error| Error::new(format!("not a signature of OpenSSH: {error}")))?;
    if !signature.reserved().is_empty() || spelt.trim_end().as_bytes() != armored.trim_ascii_end() {
        return Err(Error::new("a signature that is spelt unlike ssh-keygen's"));
    }
    PublicKey::from(key.0)
        .verify(namespace, message, &signature)
        .map_err(|_| Error::new("a signature that is not of these bytes"))?;
    Ok(key)
}

/// An unencrypted private key.
pub struct Signer(PrivateKey);

impl Signer {
    /// Parse the content of a key file of ssh-keygen; an error if it has a passphrase or another
    /// type of key than Ed25519.
    pub fn parse(file: &[u8]) -> Result<Self> {
        let key = PrivateKey::from_openssh(file)
            .map_err(|error| Error::new(format!("not a private key of OpenSSH: {error}")))?;
        if key.is_encrypted() {
            return Err(Error::new("a private key with a passphrase"));
        }
        Ed25519Key::of(key.public_key().key_data())?;
        Ok(Self(key))
    }

    /// Make a key from random bytes.
    pub fn new(seed: &[u8; SEED_BYTES], comment: &str) -> Result<Self> {
        let pair = KeypairData::Ed25519(Ed25519Keypair::from_seed(seed));
        let key = PrivateKey::new(pair, comment)
            .map_err(|error| Error::new(format!("no key can be made: {error}")))?;
        Ok(Self(key))
    }

    /// Encode the key as a key file of ssh-keygen, unencrypted.
    pub fn encode(&self) -> Result<String> {
        let file = self
            .0
            .to_openssh(LineEnding::LF)
            .map_err(|error| Error::new(format!("no key file can be made: {error}")))?;
        Ok(file.to_string())
    }

    /// Return the public key.
    pub fn public(&self) -> Result<Ed25519Key> {
        Ed25519Key::of(self.0.public_key().key_data())
    }

    /// Return the armored signature of `message`, as `verify` reads it.
    pub fn sign(&self, namespace: &str, message: &[u8]) -> Result<String> {
        let signature = self
            .0
            .sign(namespace, HashAlg::Sha512, message)
            .and_then(|made| made.to_pem(LineEnding::LF));
        signature.map_err(|error| Error::new(format!("the message cannot be signed: {error}")))
    }
}

#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    reason = "a test that goes too far has failed"
)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        Signer::new(&[7; SEED_BYTES], "tests").unwrap()
    }

    #[test]
    fn what_is_signed_is_proved() {
        let signer = Signer::parse(signer().encode().unwrap().as_bytes()).unwrap();
        let armored = signer.sign("git", b"message").unwrap();
        let key = verify("git", b"message", armored.as_bytes()).unwrap();
        assert_eq!(key, signer.public().unwrap());
        assert_eq!(
            Ed25519Key::parse(&format!("{key} a comment"))
                .unwrap()
                .to_string(),
            key.to_string()
        );
        assert!(verify("git", b"massage", armored.as_bytes()).is_err());
        assert!(verify("file", b"message", armored.as_bytes()).is_err());
    }

    #[test]
    fn no_bit_of_a_signature_may_change() {
        let armored = signer().sign("git", b"message").unwrap().into_bytes();
        let text = armored.trim_ascii_end();
        for place in 0..text.len() {
            let mut other = text.to_vec();
            other[place] ^= 1;
            assert!(verify("git", b"message", &other).is_err(), "byte {place}");
            assert!(verify("git", b"message", &text[..place]).is_err());
        }
    }

    #[test]
    fn other_kinds_of_keys_are_refused() {
        let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAwEAAQ==";
        assert!(Ed25519Key::parse(rsa).is_err());
        assert!(Ed25519Key::parse("").is_err());
        assert!(Ed25519Key::parse(&"x".repeat(KEY_BYTES + 1)).is_err());
    }
}
