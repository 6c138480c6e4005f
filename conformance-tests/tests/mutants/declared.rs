//! Backends that declare other capabilities than they have.

use std::{
    borrow::Cow,
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use relq_conformance::{
    Case, Scope, async_trait, cases,
    overrides::{Override, Right},
};
use relq_core::{
    capabilities::{Capabilities, LeaseScope, Order, RecoveryBound},
    operator::{Page, PeekRequest, WorkerReport},
    outcome::{Extended, Pushed},
    *,
};

use crate::{
    judge::judge,
    mutant::{HEALTHY, Mutant},
    table::in_parallel,
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

/// A right backend without any option, order or lease of a job's own. It refuses a request
/// that uses one.
struct Modest(Declares);

impl Modest {
    fn new() -> Self {
        Self(Declares::this(|can| {
            can.supported = Cow::Borrowed(&[]);
            can.priorities = Priority::NORMAL..=Priority::NORMAL;
            can.order = Order::Unordered;
            can.lease_scope = LeaseScope::Worker;
        }))
    }
}

#[async_trait]
impl Override for Modest {
    fn capabilities<'a>(&'a self, right: &'a Right) -> &'a Capabilities {
        self.0.capabilities(right)
    }

    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.capabilities(right).check_push(jobs, token.is_some())?;
        right.push(jobs, token).await
    }

    async fn report_worker(&self, _: &Right, _: &WorkerReport) -> Result<(), Error> {
        Ok(())
    }

    async fn stats(&self, right: &Right) -> Result<Stats, Error> {
        let mut stats = right.stats().await?;
        stats.oldest_ready_age = None;
        Ok(stats)
    }

    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        self.capabilities(right).check_peek(ask)?;
        right.peek(ask).await
    }
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

/// A backend that refuses all that it does not support passes, whichever needs of a case it
/// lacks. The probes of several needs run one after the other on the same queue, so what
/// one of them leaves behind can make the next one fail.
#[test]
fn a_backend_without_any_option_passes_by_refusing_each() {
    let modest =
        Mutant { overrides: Some(|| std::sync::Arc::new(Modest::new())), ..HEALTHY };
    let mut lists = Vec::new();
    let mut is_new = |case: &&Case| {
        let has_several = case.scope != Scope::Embedded && case.needs.len() > 1;
        let is_new = has_several && !lists.contains(&case.needs);
        lists.extend(is_new.then_some(case.needs));
        is_new
    };
    let concerned: Vec<_> = cases().iter().filter(&mut is_new).collect();
    let caught = Mutex::new(Vec::new());

    in_parallel(concerned.len(), |at| {
        let Case { id, needs, .. } = concerned[at];
        if let Err(words) = judge(modest, id) {
            caught.lock().unwrap().push(format!("{id} needs {needs:?}: {words}"));
        }
    });

    assert!(concerned.len() > 50, "{concerned:?}");
    assert_eq!(caught.into_inner().unwrap(), [""; 0]);
}
