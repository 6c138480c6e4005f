//! The lengths of the leases, expiries and time limits that cases use.

use std::time::Duration;

/// A lease that outlives every case: its holder never loses it.
pub(crate) const HELD: Duration = Duration::from_secs(600);

/// A lease that a case lets expire. No case may rely on it being live.
pub(crate) const BRIEF: Duration = Duration::from_millis(200);

/// How far a case advances the store's clock so that a `BRIEF` lease expires.
pub(crate) const PAST_BRIEF: Duration = Duration::from_millis(230);

/// The expiry (`expires_in`) of jobs that a case either delivers in time or lets
/// expire. The clock of an embedded store runs on, so this is longer than any time for
/// which a machine stands still.
pub(crate) const LIFE: Duration = Duration::from_secs(20);

/// How far a case advances the store's clock so that a job with the expiry `LIFE`
/// expires.
pub(crate) const PAST_LIFE: Duration = Duration::from_millis(20_030);

/// Longer than the five minutes for which the id of an ended job and the token of a call
/// are remembered (R4).
pub(crate) const PAST_WINDOW: Duration = Duration::from_secs(303);

/// Shorter than these five minutes. The clock of an embedded store runs on, so the rest is
/// longer than any time for which a machine stands still.
pub(crate) const WITHIN_WINDOW: Duration = Duration::from_secs(280);

/// The longest time in which a claim counts as woken, or a call as returning at once, by
/// the virtual clock.
pub(crate) const WOKEN: Duration = Duration::from_secs(3);

/// The same by a clock that runs on while the machine stands still or waits for its disk.
/// It is shorter than the wait of a claim that nothing wakes.
pub(crate) const WOKEN_IN_REAL_TIME: Duration = Duration::from_secs(15);
