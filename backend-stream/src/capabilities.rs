//! The capabilities of this backend: the supported options and the declared limits.

use std::borrow::Cow;

use relq_core::{
    Priority,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
};

use crate::wait;

/// The priority one level below normal.
const PATIENT: Priority =
    Priority::new(Priority::NORMAL.level() - 1).expect("there are levels below");

/// The priority one level above normal.
const URGENT: Priority =
    Priority::new(Priority::NORMAL.level() + 1).expect("there are levels above");

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "stream",
    supported: Cow::Borrowed(&[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Priority,
        Capability::Unique,
        Capability::Expiry,
        Capability::Schedules,
        Capability::Results,
        Capability::Followers,
        Capability::Inspect,
        Capability::Restore,
        Capability::BlockingWait,
        Capability::ReadyAge,
        Capability::Batches,
    ]),
    priorities: PATIENT..=URGENT,
    lateness: wait::RECHECK,
    order: Order::Fifo,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits::DEFAULT,
};
