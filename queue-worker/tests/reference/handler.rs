//! The handler of a scenario. It acts as the job's plan says, and records its actions.

use std::{
    collections::HashMap,
    panic::resume_unwind,
    sync::{Arc, Mutex},
};

use relq_core::environment::Clock;
use relq_worker::{Failure, JobContext};

use crate::{
    scenario::{AttemptPlan, HandlerResult, OnCancellation, ms},
    store::World,
    trace::{Expected, Lease, What},
};

pub(crate) struct ScriptedHandler {
    world: Arc<World>,
    starts: Mutex<HashMap<usize, usize>>,
}

/// One run of the handler. It records its end, even if its future is dropped.
struct Run {
    world: Arc<World>,
    lease: Lease,
    is_over: bool,
}

impl Run {
    fn ended(mut self, result: Result<(), Expected>) {
        self.is_over = true;
        let what = What::Ended { lease: self.lease.clone(), result };
        self.world.trace.record(self.world.now(), what);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.is_over {
            let what = What::Dropped { lease: self.lease.clone() };
            self.world.trace.record(self.world.now(), what);
            self.world.clock.used();
        }
    }
}

impl ScriptedHandler {
    pub(crate) fn new(world: &Arc<World>) -> Self {
        Self { world: Arc::clone(world), starts: Mutex::default() }
    }

    pub(crate) async fn handle(&self, job: JobContext) -> Result<(), Failure> {
        let index: usize = std::str::from_utf8(job.payload())?.parse()?;
        let plan = self.next_plan(index);
        let lease = self.world.trace.latest_lease(index, job.attempt());
        let started = What::Started { lease: lease.clone() };
        self.world.trace.record(self.world.now(), started);
        self.world.clock.used();
        let run = Run { world: Arc::clone(&self.world), lease, is_over: false };
        let work = self.world.clock.sleep(ms(plan.runs));
        tokio::pin!(work);
        let is_asked = tokio::select! {
            biased;
            () = &mut work => false,
            () = job.cancelled() => true,
        };
        if is_asked {
            let why = job.cancellation().expect("the token has fired");
            let what = What::Asked { lease: run.lease.clone(), why };
            self.world.trace.record(self.world.now(), what);
            self.world.clock.used();
            if plan.on_cancellation == OnCancellation::Continue {
                work.await;
            }
        }
        // The worker sends it only for a job that keeps its result and is done.
        job.set_result(crate::queue::words(&run.lease))?;
        result_of(plan.result, run)
    }

    fn next_plan(&self, index: usize) -> AttemptPlan {
        let mut starts = self.starts.lock().unwrap();
        let starts = starts.entry(index).or_default();
        let plan = self.world.plan(index).attempts.get(*starts).cloned();
        *starts += 1;
        plan.unwrap_or(AttemptPlan {
            runs: 5,
            result: HandlerResult::Done,
            on_cancellation: OnCancellation::End,
        })
    }
}

fn result_of(result: HandlerResult, run: Run) -> Result<(), Failure> {
    let error = format!("failed, {}", crate::queue::words(&run.lease));
    match result {
        HandlerResult::Done => {
            run.ended(Ok(()));
            return Ok(());
        }
        HandlerResult::Panic => {
            run.ended(Err(Expected::Retry {
                error: format!("the handler panicked: {error}"),
            }));
            // `resume_unwind` panics without a message on standard error.
            resume_unwind(Box::new(error));
        }
        _ => {}
    }
    let (expected, failure) = match result {
        HandlerResult::RetryAfter(after) => (
            Expected::RetryAfter { after: ms(after), error: error.clone() },
            Failure::retry_after(ms(after), error),
        ),
        HandlerResult::Dead => {
            (Expected::Dead { error: error.clone() }, Failure::dead(error))
        }
        HandlerResult::Discard => (Expected::Discard, Failure::discard(error)),
        HandlerResult::Postpone(after) => (
            Expected::Postpone { after: ms(after) },
            Failure::postpone(ms(after), error),
        ),
        _ => (Expected::Retry { error: error.clone() }, Failure::retry(error)),
    };
    run.ended(Err(expected));
    Err(failure)
}
