//! Turns a leased entry into a delivery.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Delivery, Error, Receipt, environment::Timestamp};

use crate::entry::Entry;

/// A leased entry that is buried instead of delivered, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undeliverable {
    /// The letter for the reason, as in [`Failure`](super::Failure).
    pub why: char,
    /// The reason in words, if the letter alone does not say it.
    pub error: &'static str,
}

/// Reads a leased entry, unless it is malformed or has expired at `now`, the time of
/// the claim (R3, R17).
///
/// # Errors
/// When the entry must be buried. It is leased already, so it cannot be lost before
/// that.
pub fn read(element: &Bytes, now: Timestamp) -> Result<Entry, Undeliverable> {
    let malformed = |error| Undeliverable { why: 'm', error };
    let entry = Entry::decode(element).map_err(|error| malformed(error.reason()))?;
    if entry.is_bare && Entry::is_marked(&entry.payload) {
        let why = Entry::decode(&entry.payload).err();
        return Err(malformed(why.map_or("unreadable", |error| error.reason())));
    }
    if entry.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(Undeliverable { why: 'x', error: "" });
    }
    Ok(entry)
}

/// The result of a claim that leased `deliveries` and also jobs that had to be buried.
/// A failure to bury does not lose the deliveries: a later claim finds the unburied
/// jobs once their leases have expired.
///
/// # Errors
/// The error of burying, if there is nothing to deliver.
pub fn bury_beside<T>(
    deliveries: &[Delivery],
    buried: Result<T, Error>,
) -> Result<(), Error> {
    match buried {
        Err(error) if !deliveries.is_empty() => {
            tracing::debug!(%error, "undeliverable jobs were not buried; another claim retries");
            Ok(())
        }
        other => other.map(drop),
    }
}

/// The delivery of a job that `token` holds for `lease`. A lease length set on the job
/// itself takes precedence.
pub fn delivery(entry: Entry, token: Bytes, lease: Duration) -> Delivery {
    let receipt = Receipt::new(entry.id, u32::from(entry.attempt), token);
    let delivery = Delivery::new(receipt, entry.payload, entry.lease.unwrap_or(lease))
        .max_attempts(entry.max_attempts)
        .priority(entry.priority)
        .headers(entry.headers);
    match entry.batch {
        Some(batch) => delivery.batch(batch),
        None => delivery,
    }
}
