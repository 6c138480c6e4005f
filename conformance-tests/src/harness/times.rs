//! The lengths of the leases, expiries and time limits that cases use.

use std::time::Duration;

/// A lease that outlives every case: its holder never loses it.
pub(crate) const HELD: Duration = Duration::from_secs(600);

/// A lease that a case lets expire. No case may rely on it being live.
pub(crate) const BRIEF: Duration = Duration::from_millis(200);

/// How far a case advances the store's clock so that a `BRIEF` lease expires.
pub(crate) const PAST_BRIEF: Duration = Duration::from_millis(230);

/// The expiry (`expires_in`) of jobs that a case either delivers in time or lets
/// expire.
pub(crate) const LIFE: Duration = Duration::from_secs(1);

/// How far a case advances the store's clock so that a job with the expiry `LIFE`
/// expires.
pub(crate) const PAST_LIFE: Duration = Duration::from_millis(1030);

/// The longest time in which a claim counts as woken, or a call as returning at once,
/// on a machine that is busy with other cases.
pub(crate) const WOKEN: Duration = Duration::from_secs(3);
