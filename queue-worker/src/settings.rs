//! The settings of a worker, their defaults, and their checks.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{environment::Environment, limits::MAX_DURATION};

use crate::{
    InvalidSetting, RetryPolicy, already_done::Check, lease_clock::LeaseClock,
    observers::Observers,
};

/// The default number of handlers that run at once.
pub const DEFAULT_CONCURRENCY: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

/// The default lease. The jobs of a dead worker wait at least this long.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// The default time that running handlers get at shutdown. Service managers commonly
/// kill a process after 30 seconds.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(25);

/// How long a worker retries, by default, while the store returns an error that only a
/// person can repair. A replica may return such errors until it is promoted, and that
/// takes less time.
pub const DEFAULT_GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// The longest time that one claim waits for a job. A waiting claim returns as soon as
/// a job is ready, so this limit only matters if the store's notification is lost.
pub const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The shortest default interval of the reaper, used for short leases.
pub const SHORTEST_REAP_INTERVAL: Duration = Duration::from_secs(1);

/// The longest default interval of the reaper, used for long leases.
pub const LONGEST_REAP_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) concurrency: NonZeroU32,
    /// The most jobs that wait for a slot. `None` if no job is claimed before it has one.
    pub(crate) prefetch: Option<NonZeroU32>,
    pub(crate) lease: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) reap_every: Option<Duration>,
    pub(crate) give_up_after: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) already_done: Option<Check>,
    pub(crate) checks_every_delivery: bool,
    pub(crate) observers: Observers,
    pub(crate) environment: Environment,
    /// The clock of the leases, which reads the clocks of the environment.
    pub(crate) lease_clock: LeaseClock,
}

impl Default for Settings {
    fn default() -> Self {
        let environment = Environment::default();
        Self {
            concurrency: DEFAULT_CONCURRENCY,
            prefetch: None,
            lease: DEFAULT_LEASE,
            timeout: None,
            grace: DEFAULT_GRACE,
            reap_every: None,
            give_up_after: DEFAULT_GIVE_UP_AFTER,
            retry: RetryPolicy::default(),
            already_done: None,
            checks_every_delivery: false,
            observers: Observers::default(),
            lease_clock: LeaseClock::new(environment.clone()),
            environment,
        }
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<(), InvalidSetting> {
        let millisecond = Duration::from_millis(1);
        check_range("the lease", self.lease, millisecond)?;
        check_range("the grace time", self.grace, Duration::ZERO)?;
        check_range("the time to give up", self.give_up_after, Duration::ZERO)?;
        if let Some(timeout) = self.timeout {
            check_range("the time-out", timeout, millisecond)?;
        }
        self.reap_every.map_or(Ok(()), |interval| {
            check_range("the reaper's interval", interval, millisecond)
        })
    }

    /// Checks what a worker on several queues cannot do: a prefetched job of one queue
    /// would wait for a slot that another queue may use.
    pub(crate) fn check_of_several(&self) -> Result<(), InvalidSetting> {
        self.prefetch.map_or(Ok(()), |_| {
            let reason = "is set: a worker on several queues cannot prefetch";
            Err(InvalidSetting::new("the number of prefetched jobs", reason))
        })
    }

    /// The longest time between two checks for expired leases. It is half the lease,
    /// but between a shortest and a longest interval. So the jobs of a dead worker
    /// usually wait for one and a half leases at most (R9).
    pub(crate) fn reap_interval(&self) -> Duration {
        let by_lease = self.lease / 2;
        self.reap_every.unwrap_or_else(|| {
            by_lease.clamp(SHORTEST_REAP_INTERVAL, LONGEST_REAP_INTERVAL)
        })
    }

    /// How long one claim waits. At most a third of the lease, because a lease is
    /// counted from the moment when its claim was sent. Never zero, because some stores
    /// take zero as "wait for ever" (taskforcesh/bullmq#2466).
    pub(crate) fn wait(&self) -> Duration {
        (self.lease / 3).clamp(Duration::from_millis(1), LONGEST_WAIT)
    }
}

fn check_range(
    setting: &'static str,
    value: Duration,
    least: Duration,
) -> Result<(), InvalidSetting> {
    if value < least {
        let reason = format!("is {value:?}: give at least {least:?}");
        return Err(InvalidSetting::new(setting, reason));
    }
    if value > MAX_DURATION {
        return Err(InvalidSetting::new(setting, "is longer than a hundred years"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The numbers are those of the methods of [`Worker`](crate::Worker).
    #[test]
    fn the_defaults_are_those_that_are_documented() {
        let settings = Settings::default();

        let Settings { lease, grace, give_up_after, .. } = settings;
        assert_eq!(settings.concurrency.get(), 16, "handlers at once");
        assert_eq!(lease, 30 * SECOND, "the lease");
        assert_eq!(grace, 25 * SECOND, "the grace time");
        assert_eq!(give_up_after, 60 * SECOND, "the time to give up");
        assert_eq!((settings.timeout, settings.prefetch), (None, None));
    }

    /// A claim waits for a third of the lease, but never for zero, which is for ever in some
    /// stores. The reaper runs after half the lease (R9). Both have limits.
    #[test]
    fn the_lease_sets_the_wait_of_a_claim_and_the_interval_of_the_reaper() {
        let millisecond = Duration::from_millis(1);
        for (lease, wait, interval) in [
            (millisecond, millisecond, SECOND),
            (3 * SECOND, SECOND, 3 * SECOND / 2),
            (15 * SECOND, 5 * SECOND, 15 * SECOND / 2),
            (60 * SECOND, 5 * SECOND, 30 * SECOND),
            (3600 * SECOND, 5 * SECOND, 30 * SECOND),
        ] {
            let settings = Settings { lease, ..Settings::default() };
            assert_eq!(settings.wait(), wait, "the wait with a lease of {lease:?}");
            let found = settings.reap_interval();
            assert_eq!(found, interval, "the interval with a lease of {lease:?}");
        }
    }

    #[test]
    fn a_setting_of_a_hundred_years_is_accepted() {
        let longer = MAX_DURATION + Duration::from_nanos(1);
        let is_accepted = |value| check_range("the lease", value, SECOND).is_ok();

        assert!(is_accepted(MAX_DURATION), "it is refused");
        assert!(!is_accepted(longer), "a longer one is accepted");
    }
}
