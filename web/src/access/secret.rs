//! Secrets, compared in constant time.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Why a secret or a user is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSecret {
    /// The secret can be guessed.
    #[error("the secret has {bytes} bytes, and must have {least} or more")]
    TooShort {
        /// The length of the secret.
        bytes: usize,
        /// The shortest length that is allowed.
        least: usize,
    },
    /// The name of the user is empty or has a colon.
    #[error("the name of the user must not be empty or hold a colon")]
    User,
}

/// The digest of a secret. Digests have one length, so a comparison tells neither the
/// length of the secret nor how much of it is right.
pub(crate) struct Secret([u8; 32]);

impl Secret {
    pub(crate) fn new(text: &str, least: usize) -> Result<Self, InvalidSecret> {
        let bytes = text.len();
        if bytes < least {
            return Err(InvalidSecret::TooShort { bytes, least });
        }
        Ok(Self::exact(text))
    }

    pub(crate) fn exact(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    pub(crate) fn is(&self, given: &str) -> bool {
        self.0.ct_eq(&Self::exact(given).0).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}
