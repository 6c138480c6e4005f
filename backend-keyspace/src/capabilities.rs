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
    backend: "keyspace",
    supported: Cow::Borrowed(&[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Unique,
        Capability::Expiry,
        Capability::BlockingWait,
    ]),
    priorities: Priority::NORMAL..=Priority::NORMAL,
    lateness: wait::RECHECK,
    order: Order::Unordered,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits::DEFAULT,
};
