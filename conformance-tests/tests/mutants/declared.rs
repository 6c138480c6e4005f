//! Backends that declare other capabilities than they have.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use relq_conformance::{
    async_trait, cases,
    overrides::{Override, Right},
};
use relq_core::{
    capabilities::{Capabilities, Order, RecoveryBound},
    outcome::Extended,
    *,
};

use crate::{
    judge::judge,
    mutant::{HEALTHY, Mutant},
};

/// Declares the capabilities that `change` makes of those of the healthy queue, and
/// otherwise behaves like that queue.
pub(crate) struct Declares {
    change: fn(&mut Capabilities),
    declared: OnceLock<Capabilities>,
}

impl Declares {
    pub(crate) fn this(change: fn(&mut Capabilities)) -> Self {
        Self { change, declared: OnceLock::new() }
    }
}

impl Override for Declares {
    fn capabilities<'a>(&'a self, right: &'a Right) -> &'a Capabilities {
        self.declared.get_or_init(|| {
            let mut can = right.capabilities().clone();
            (self.change)(&mut can);
            can
        })
    }
}

/// Changes the declared capabilities to those of a backend that uses its list as a ring
/// and has two priorities.
pub(crate) fn ring(can: &mut Capabilities) {
    can.order = Order::Rotating;
    can.recovery = RecoveryBound::OneTurn;
    can.priorities = Priority::NORMAL..=Priority::HIGHEST;
}

/// Extends, with each heartbeat, the leases of all jobs that it has ever delivered.
#[derive(Default)]
pub(crate) struct KeepsAll {
    given: Mutex<Vec<Receipt>>,
}

#[async_trait]
impl Override for KeepsAll {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let taken = right.claim(ask).await?;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.extend(taken.iter().map(|one| one.receipt.clone()));
        Ok(taken)
    }

    async fn extend(
        &self,
        right: &Right,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        right.extend(worker, &given, lease).await?;
        right.extend(worker, held, lease).await
    }
}

/// A backend that does more than it declares passes the cases of the class that it
/// declares.
#[test]
fn a_backend_that_does_more_passes_the_cases_of_its_class() {
    fn nothing(can: &mut Capabilities) {
        can.order = Order::Unordered;
        can.recovery = RecoveryBound::OneTurn;
    }
    let modest = Mutant {
        overrides: Some(|| std::sync::Arc::new(Declares::this(nothing))),
        ..HEALTHY
    };
    let topics = ["order::", "recovery::", "delay::", "worker_release::"];
    let concerned =
        cases().iter().filter(|case| topics.iter().any(|it| case.id.starts_with(it)));

    let caught: Vec<_> = concerned
        .filter_map(|case| {
            Some(format!("{}: {}", case.id, judge(modest, case.id).err()?))
        })
        .collect();

    assert_eq!(caught, [""; 0]);
}
