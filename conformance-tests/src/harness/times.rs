//! The leases, expiries and time limits of cases.

use std::time::Duration;

/// A lease that outlives every case: its holder never loses it.
pub(crate) const HELD: Duration = Duration::from_secs(600);

/// A lease that a case lets expire. No case may rely on it being live.
pub(crate) const BRIEF: Duration = Duration::from_millis(200);

/// How far the store's clock is advanced for a `BRIEF` lease to expire.
pub(crate) const PAST_BRIEF: Duration = Duration::from_millis(230);

/// An expiry: a case delivers the job before it, or lets it pass.
pub(crate) const LIFE: Duration = Duration::from_secs(1);

/// How far the store's clock is advanced for a `LIFE` to pass.
pub(crate) const PAST_LIFE: Duration = Duration::from_millis(1030);

/// The longest time in which a claim counts as woken, or a call as returning at once,
/// on a machine that is busy with other cases.
pub(crate) const WOKEN: Duration = Duration::from_secs(3);
