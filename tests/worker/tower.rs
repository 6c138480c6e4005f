//! Tests of handlers behind layers of tower: a service is ready before the claim, and its
//! errors are the results of attempts. `tower_failing.rs` has services that are never
//! ready again.

use std::{
    future::{pending, poll_fn},
    num::NonZeroU32,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use relq::{
    NewJob, Queue, ReliableQueueExt, Stats,
    worker::{
        Failure, Handler, HandlerService, Job, JobContext, KIND_HEADER, Queues,
        RetryPolicy, Router, SharedService, Worker, layered, service,
    },
};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, Semaphore};
use tower::{
    BoxError, Service, ServiceBuilder, load_shed::error::Overloaded, service_fn,
};

use crate::{
    faulty::{Fault, Faulty},
    fixture::{Fixture, LIMIT, Running},
    kinds::Log,
    queues::{push_many, served as served_as, worker_on_several},
};

const HOUR: Duration = Duration::from_secs(3600);

async fn succeed(_: JobContext) -> Result<(), Failure> {
    Ok(())
}

/// A handler whose jobs run until `released` has a permit for each.
fn until_released(released: &Arc<Semaphore>) -> impl Handler {
    let released = Arc::clone(released);
    move |_: JobContext| {
        let released = Arc::clone(&released);
        async move {
            released.acquire().await?.forget();
            Ok::<_, Failure>(())
        }
    }
}

/// A layer's time-out drops the handler, and its error is kept like that of a handler.
pub(crate) async fn timeout_of_a_layer_is_a_failure_that_is_retried(fixture: Fixture) {
    fixture.push("slow once").await;
    fixture.push(NewJob::new("slow").max_attempts(1.try_into().unwrap())).await;
    let handler = async |job: JobContext| {
        if !job.is_redelivery() {
            pending::<()>().await;
        }
        Ok::<_, Failure>(())
    };

    let worker = fixture.start(layered(handler, |inner| {
        ServiceBuilder::new().timeout(Duration::from_millis(20)).service(inner)
    }));
    worker.until(|summary| (summary.done, summary.dead) == (1, 1)).await;
    worker.stop().await;

    let dead = fixture.dead().await;
    assert_eq!(dead[0].last_error.as_deref(), Some("request timed out"));
}

/// A worker claims no job that its service would not run at once: another worker gets it.
pub(crate) async fn concurrency_limit_bounds_the_claims(fixture: Fixture) {
    fixture.push_many(20).await;
    let released = Arc::new(Semaphore::new(0));
    let limited = layered(until_released(&released), |inner| {
        ServiceBuilder::new().concurrency_limit(3).service(inner)
    });

    let limited = fixture.start(limited);
    limited.until_running(3).await;
    let other = fixture.start(succeed);
    fixture.until(|stats| stats.finished == 17).await;
    assert_eq!((fixture.stats().await.leased, fixture.stats().await.ready), (3, 0));
    other.stop().await;

    // The service is ready again after each job.
    released.add_permits(100);
    fixture.push_many(50).await;
    fixture.until(|stats| stats.finished == 70).await;
    assert_eq!(limited.stop().await.done, 53);
}

/// A claim whose reply does not come gives up its part of the service's limit, as it gives up
/// its slots. Its job runs when the reply arrives.
pub(crate) async fn claim_that_hangs_keeps_no_service_ready(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    fixture.push("late").await;
    push_many(&*second, 20).await;
    let answer = Arc::new(Notify::new());
    let late = Arc::clone(&answer);
    let slow = Faulty::new(fixture.queue.clone())
        .on_claim(move |call, _| (call == 0).then(|| Fault::Late(Arc::clone(&late))));
    let limited = layered(succeed, |inner| {
        ServiceBuilder::new().concurrency_limit(1).service(inner)
    });

    let queues = Queues::strict([
        served_as("hangs", Arc::new(slow)),
        served_as("second", second),
    ]);
    let worker = Running::start(worker_on_several(queues), limited);
    worker.until(|summary| summary.done == 20).await;
    assert_eq!(fixture.stats().await.leased, 1, "the claim has its job");
    answer.notify_one();
    fixture.until(|stats| stats.finished == 1).await;

    assert_eq!(worker.stop().await.done, 21);
}

/// The queues of a worker share its service: together they claim no more jobs than it would
/// run at once.
pub(crate) async fn queues_of_a_worker_share_the_limit(fixture: Fixture) {
    let queues = [fixture.queue.clone(), fixture.open_another("second").await];
    for queue in &queues {
        push_many(&**queue, 20).await;
    }
    let released = Arc::new(Semaphore::new(0));
    let limited = layered(until_released(&released), |inner| {
        ServiceBuilder::new().concurrency_limit(3).service(inner)
    });

    let names = ["first", "second"];
    let served = queues.clone().into_iter().zip(names);
    let served = served.map(|(queue, name)| (served_as(name, queue), NonZeroU32::MIN));
    let limited = Running::start(worker_on_several(Queues::weighted(served)), limited);
    limited.until_running(3).await;
    let others =
        queues.clone().map(|queue| Running::start(Worker::new(queue), succeed));
    until_all(&queues, |stats| {
        (stats.finished, stats.leased, stats.ready) == (37, 3, 0)
    })
    .await;
    for other in others {
        other.stop().await;
    }
    released.add_permits(3);
    until_all(&queues, |stats| stats.finished == 40).await;

    assert_eq!(limited.stop().await.done, 3);
}

/// Waits until the sum of the queues' statistics meets the condition.
async fn until_all(queues: &[Arc<dyn Queue>], is_met: impl Fn(&Stats) -> bool) {
    let met = async {
        loop {
            let mut all = Stats::new();
            for queue in queues {
                let one = queue.stats().await.unwrap();
                all.ready += one.ready;
                all.leased += one.leased;
                all.finished += one.finished;
            }
            if is_met(&all) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, met).await.unwrap();
}

/// While a rate limit is used up, the worker claims nothing: another worker gets the jobs.
pub(crate) async fn rate_limit_leaves_jobs_to_others(fixture: Fixture) {
    fixture.push_many(10).await;
    let limited = layered(succeed, |inner| {
        ServiceBuilder::new()
            .layer_fn(SharedService::new)
            .rate_limit(2, HOUR)
            .service(inner)
    });

    let limited = fixture.start(limited);
    fixture.until(|stats| stats.finished == 2).await;
    let other = fixture.start(succeed);
    fixture.until(|stats| stats.finished == 10).await;

    assert_eq!(other.stop().await.done, 8);
    assert_eq!(limited.stop().await.done, 2);
}

/// A service that sheds, with errors that postpone.
fn shedding(
    inner: HandlerService<impl Handler>,
) -> impl Service<JobContext, Response = (), Error = Failure, Future: Send> + Clone + Send
{
    let postpone = |error: BoxError| match error.is::<Overloaded>() {
        true => Failure::postpone(Duration::from_millis(20), "overloaded"),
        false => error.into(),
    };
    ServiceBuilder::new()
        .map_err(postpone)
        .load_shed()
        .concurrency_limit(1)
        .service(inner)
}

/// A job that a layer sheds can be postponed, so that no attempt counts (R26).
pub(crate) async fn shed_job_is_postponed(fixture: Fixture) {
    let once =
        |name: &str| NewJob::new(name.to_owned()).max_attempts(1.try_into().unwrap());
    fixture.push(once("first")).await;
    fixture.push(once("second")).await;
    let released = Arc::new(Semaphore::new(0));

    let worker = fixture.start(layered(until_released(&released), shedding));
    worker.until(|summary| summary.postponed > 0).await;
    released.add_permits(2);
    worker.until(|summary| summary.done == 2).await;

    assert_eq!(worker.stop().await.dead, 0);
}

/// The clone that holds the permit of a limit is called first.
pub(crate) async fn job_that_a_limit_admits_is_not_shed(fixture: Fixture) {
    let worker = fixture.start(layered(succeed, shedding));
    for done in 1..=20 {
        fixture.push("alone").await;
        fixture.until(|stats| stats.finished == done).await;
    }

    assert_eq!(worker.stop().await.postponed, 0);
}

/// The service of a layer that turns a panic into a failure of its own choice.
fn catching(
    inner: HandlerService<impl Handler>,
) -> impl Service<JobContext, Response = (), Error = BoxError, Future: Send> + Clone + Send
{
    service_fn(move |job| {
        let mut attempt = inner.clone().call(job);
        poll_fn(move |context| {
            let poll = AssertUnwindSafe(|| attempt.as_mut().poll(context));
            let caught = |_| Poll::Ready(Err(Failure::dead("caught").into_error()));
            catch_unwind(poll).unwrap_or_else(caught)
        })
    })
}

/// A layer of the application's own sees each attempt and its result, also that of a layer
/// inside of it that catches panics. tower has neither a trace layer nor one for panics.
pub(crate) async fn caught_panic_is_a_failure_of_the_layer(fixture: Fixture) {
    fixture.push(NewJob::new("job").header(KIND_HEADER, "hopeless")).await;
    let handler = async |_: JobContext| -> Result<(), Failure> { panic!("oh no") };
    let log = Log::default();
    let trace = log.clone();

    let worker = fixture.start(layered(handler, |inner| {
        let inner = catching(inner);
        service_fn(move |job: JobContext| {
            let (trace, kind) = (trace.clone(), job.kind().map(ToOwned::to_owned));
            let attempt = inner.clone().call(job);
            async move {
                let result = attempt.await;
                trace.add(format!("{kind:?}: {result:?}"));
                result
            }
        })
    }));
    worker.until(|summary| summary.dead == 1).await;
    worker.stop().await;

    assert_eq!(fixture.dead().await[0].last_error.as_deref(), Some("caught"));
    let traced = log.sorted();
    assert_eq!(traced.len(), 1, "{traced:?}");
    assert!(traced[0].starts_with("Some(\"hopeless\"): Err"), "{traced:?}");
}

#[derive(Serialize, Deserialize)]
struct Endless;

impl Job for Endless {
    const KIND: &'static str = "endless";

    fn timeout() -> Option<Duration> {
        Some(Duration::from_millis(20))
    }

    fn retry_policy() -> Option<RetryPolicy> {
        RetryPolicy::exponential(HOUR, HOUR)
            .and_then(|policy| policy.at_least(HOUR))
            .ok()
    }
}

#[derive(Serialize, Deserialize)]
struct Hopeless;

impl Job for Hopeless {
    const KIND: &'static str = "hopeless";
}

/// The time-out and the retries of a kind hold behind layers, and a handler's failure
/// passes through them unchanged.
pub(crate) async fn options_of_a_layered_router_hold(fixture: Fixture) {
    let router: Router = Router::new()
        .job(async |_: Endless| pending::<Result<(), Failure>>().await)
        .job(async |_: Hopeless| Err::<(), _>(Failure::dead("hopeless")));
    fixture.push(Endless.to_new_job().unwrap()).await;
    fixture.push(Hopeless.to_new_job().unwrap()).await;

    let worker = fixture.start(layered(router, |inner| {
        ServiceBuilder::new().concurrency_limit(2).timeout(HOUR).service(inner)
    }));
    worker.until(|summary| (summary.retried, summary.dead) == (1, 1)).await;
    worker.stop().await;

    assert_eq!(fixture.dead().await[0].last_error.as_deref(), Some("hopeless"));
    assert_eq!(fixture.stats().await.scheduled, 1, "the retry waits for an hour");
}

/// A router is ready if its handler of jobs without a kind is.
pub(crate) async fn service_of_a_router_is_ready_before_the_claim(fixture: Fixture) {
    fixture.push_many(5).await;
    let limited = ServiceBuilder::new()
        .layer_fn(SharedService::new)
        .rate_limit(1, HOUR)
        .service(HandlerService::new(succeed));

    // A router with a state waits for its service, too.
    let router = Router::<u8>::new().raw(service(limited)).with_state(7);
    let limited = fixture.start(router);
    fixture.until(|stats| stats.finished == 1).await;
    let other = fixture.start(succeed);
    fixture.until(|stats| stats.finished == 5).await;

    assert_eq!(other.stop().await.done, 4);
    assert_eq!(limited.stop().await.done, 1);
}

/// A job that an already-done check acknowledges uses up no readiness.
pub(crate) async fn job_that_is_not_passed_on_keeps_the_service_ready(
    fixture: Fixture,
) {
    fixture.push_many(3).await;
    let mut first_attempts = Vec::new();
    while let Some(job) = fixture.claim_one().await {
        first_attempts.push(job);
    }
    for job in &first_attempts {
        fixture.queue.retry(&job.receipt, Duration::ZERO, "again").await.unwrap();
    }
    let limited = layered(succeed, |inner| {
        ServiceBuilder::new()
            .layer_fn(SharedService::new)
            .rate_limit(1, HOUR)
            .service(inner)
    });
    let worker = fixture.worker().already_done(async |_| Ok::<_, Failure>(true));

    let worker = Running::start(worker, limited);
    worker.until(|summary| summary.done == 3).await;
    fixture.push("first attempt").await;
    worker.until(|summary| summary.done == 4).await;
    worker.stop().await;
}
