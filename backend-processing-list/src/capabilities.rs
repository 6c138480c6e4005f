//! The capabilities of this backend: the supported options and the declared limits.

use std::{borrow::Cow, time::Duration};

use relq_core::{
    Priority,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
};

/// The name of this backend in error messages and in the queue's marker key.
pub(crate) const BACKEND: &str = "processing-list";

/// The longest time that a waiting claim sleeps before it looks for jobs again, even
/// without a notification. It bounds the delay when a waiter dies after it took a
/// notification.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

const PER_WORKER: Capabilities = Capabilities {
    backend: BACKEND,
    supported: Cow::Borrowed(&[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Unique,
        Capability::Expiry,
        Capability::Schedules,
        Capability::BlockingWait,
        Capability::ReadyAge,
    ]),
    priorities: Priority::NORMAL..=Priority::NORMAL,
    lateness: RECHECK,
    order: Order::Fifo,
    lease_scope: LeaseScope::Worker,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits::DEFAULT,
};

pub(crate) static OF_PER_WORKER: Capabilities = PER_WORKER;
pub(crate) static OF_SHARED: Capabilities =
    Capabilities { lease_scope: LeaseScope::Job, ..PER_WORKER };
