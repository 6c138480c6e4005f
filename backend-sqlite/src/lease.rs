//! The token of a lease: it identifies the lease, and contains the key of its job.

/// The number of random bytes in a token. All leases of one claim share them.
pub(crate) const NONCE_BYTES: usize = 12;

/// The token of a lease: the random bytes of its claim, then the job's key in the file.
/// The key lets a settlement find the job without an index of tokens.
pub(crate) type Token = [u8; NONCE_BYTES + 8];

/// The token of a claim's lease of this job.
pub(crate) fn token(nonce: &[u8; NONCE_BYTES], job: i64) -> Token {
    let mut token = Token::default();
    token[..NONCE_BYTES].copy_from_slice(nonce);
    token[NONCE_BYTES..].copy_from_slice(&job.to_be_bytes());
    token
}

/// The key of the job that a token belongs to; `None` if this backend did not make the
/// token.
pub(crate) fn job_of(token: &[u8]) -> Option<i64> {
    let (_, job) = token.split_at_checked(NONCE_BYTES)?;
    Some(i64::from_be_bytes(job.try_into().ok()?))
}
