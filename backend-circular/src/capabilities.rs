//! The capabilities of this backend: the supported options and the declared limits.

use std::borrow::Cow;

use relq_core::{
    Priority,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
};

use crate::wait;

/// The higher of the two priorities. An urgent job is pushed at the end of the ring
/// from which claims take jobs, so it is served first.
const URGENT: Priority =
    Priority::new(Priority::NORMAL.level() + 1).expect("there are levels above");

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "circular",
    supported: Cow::Borrowed(&[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Priority,
        Capability::Unique,
        Capability::Expiry,
        Capability::Schedules,
        Capability::BlockingWait,
    ]),
    priorities: Priority::NORMAL..=URGENT,
    lateness: wait::RECHECK,
    order: Order::Rotating,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::OneTurn,
    limits: Limits::DEFAULT,
};
