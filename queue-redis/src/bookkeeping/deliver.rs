//! Turns a leased entry into a delivery.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Delivery, Error, Receipt, environment::Timestamp};

use crate::entry::{Entry, Malformed};

/// The reason why a leased entry is buried and not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undeliverable {
    /// The letter for the reason: see [`Failure::why`](super::Failure::why).
    pub why: char,
    /// The reason in words; empty if the letter is enough.
    pub error: &'static str,
}

/// Reads a leased entry, unless it is malformed or has expired at `now`, the time of
/// the claim (R3, R17).
///
/// # Errors
/// When the entry must be buried. It is leased already, so it cannot be lost before
/// that.
pub fn read(element: &Bytes, now: Timestamp) -> Result<Entry, Undeliverable> {
    let malformed =
        |error: Malformed| Undeliverable { why: 'm', error: error.reason() };
    let entry = Entry::decode(element).map_err(malformed)?;
    if let Some(error) = entry.malformed_payload() {
        return Err(malformed(error));
    }
    if entry.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(Undeliverable { why: 'x', error: "" });
    }
    Ok(entry)
}

/// Decides the result of a claim that leased `deliveries` and also jobs that had to be
/// buried. If burying fails, the deliveries are still returned: a later claim buries
/// the other jobs once their leases have expired.
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

/// Builds the delivery of a job that is leased with `token`. The lease lasts as long as
/// the job's own lease length, or else `lease`.
pub fn delivery(entry: Entry, token: Bytes, lease: Duration) -> Delivery {
    let receipt = Receipt::new(entry.id, u32::from(entry.attempt), token);
    let delivery = Delivery::new(receipt, entry.payload, entry.lease.unwrap_or(lease))
        .max_attempts(entry.max_attempts)
        .priority(entry.priority)
        .headers(entry.headers)
        .enqueued_at(entry.enqueued_at)
        .keeps_result(entry.keep_result.is_some());
    match entry.batch {
        Some(batch) => delivery.batch(batch),
        None => delivery,
    }
}
