//! From a leased entry to a delivery.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Delivery, Error, Receipt, Timestamp};

use crate::entry::Entry;

/// Why a leased entry goes to the dead letters and to no worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undeliverable {
    /// The letter for it, as [`Failure`](super::Failure) has it.
    pub why: char,
    /// The reason in words, if the letter does not say all.
    pub error: &'static str,
}

/// Reads a leased entry, unless it is malformed or has expired at `now`, the time of
/// the claim (R3, R17).
///
/// # Errors
/// What is to be buried. It is leased by now, so it cannot be lost on its way.
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

/// What the burying of leased jobs means for a claim that has leased `deliveries` with
/// them: those are not lost for it. What could not be buried meets a later claim, once
/// its lease has ended.
///
/// # Errors
/// That of the burying, when there is nothing to deliver.
pub fn bury_beside<T>(
    deliveries: &[Delivery],
    buried: Result<T, Error>,
) -> Result<(), Error> {
    match buried {
        Err(error) if !deliveries.is_empty() => {
            tracing::debug!(%error, "what cannot be delivered is left to another claim");
            Ok(())
        }
        other => other.map(drop),
    }
}

/// The delivery of a job that is held by `token` for `lease`, unless it has a lease of
/// its own.
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
