//! The capabilities of this backend: the supported options and the declared limits.

use std::borrow::Cow;

use relq_core::{
    Priority,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
};

use crate::wait;

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "zset",
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
    ]),
    priorities: Priority::LOWEST..=Priority::HIGHEST,
    lateness: wait::RECHECK,
    order: Order::Fifo,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits::DEFAULT,
};
