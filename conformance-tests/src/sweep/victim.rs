//! The actor that the fault hits.

use std::{collections::BTreeSet, fmt, ops::Deref, sync::Arc, time::Duration};

use bytes::Bytes;
use relq_core::{Delivery, Error, Queue, QueueName, WorkerId};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep},
};

use super::{BoxFuture, actors::Actors};
use crate::proxy::{Endpoint, VirtualClock};

/// Time limit of an act, whatever fault hits it (R21).
const LIMIT: Duration = Duration::from_secs(20);

/// How long the victim must be idle before its clock is advanced.
const QUIET: Duration = Duration::from_millis(4);

/// The victim's queue, clock and part.
pub(crate) struct Victim {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) clock: VirtualClock,
    pub(crate) part: Part,
}

impl Deref for Victim {
    type Target = Part;

    fn deref(&self) -> &Part {
        &self.part
    }
}

/// The worker that acts, and its jobs.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) worker: WorkerId,
    /// The deliveries that the worker holds.
    pub(crate) held: Vec<Delivery>,
    /// The jobs that the worker ran, if the act runs jobs.
    pub(crate) ran: Ran,
}

impl Part {
    pub(crate) fn new(worker: WorkerId, held: Vec<Delivery>) -> Self {
        Self { worker, held, ran: Ran::default() }
    }
}

type Tell = Arc<dyn Fn(&Bytes) + Send + Sync>;

/// The payloads of the jobs that were run, kept outside the store.
#[derive(Clone, Default)]
pub(crate) struct Ran {
    payloads: Arc<watch::Sender<Vec<Bytes>>>,
    /// Called with each payload, to record it with a process that outlives the victim.
    tell: Option<Tell>,
}

impl Ran {
    /// Calls `tell` with each payload at the moment that its job runs.
    pub(crate) fn telling(tell: impl Fn(&Bytes) + Send + Sync + 'static) -> Self {
        Self { payloads: Arc::default(), tell: Some(Arc::new(tell)) }
    }

    pub(crate) fn add(&self, payload: &Bytes) {
        if let Some(tell) = &self.tell {
            tell(payload);
        }
        self.payloads.send_modify(|ran| ran.push(payload.clone()));
    }

    pub(crate) fn payloads(&self) -> Vec<Bytes> {
        self.payloads.borrow().clone()
    }

    /// Completes once `count` different jobs were run.
    pub(crate) async fn different(&self, count: u32) {
        let is_enough = |ran: &Vec<Bytes>| {
            ran.iter().collect::<BTreeSet<_>>().len() >= count as usize
        };
        // The sender lives as long as this value.
        let _ = self.payloads.subscribe().wait_for(is_enough).await;
    }
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ran").field(&self.payloads()).finish()
    }
}

/// The victim's calls.
pub(crate) type Act = fn(Victim) -> BoxFuture<'static, Result<(), Error>>;

/// The victim's result.
#[derive(Debug)]
pub(crate) enum VictimAnswer {
    Answer(Result<(), Error>),
    /// The victim died, or could not connect.
    Nothing,
    /// The victim neither returned nor died within the limit.
    Silence,
}

/// Runs a victim's act at that endpoint until it returns or dies.
pub(crate) async fn act(
    actors: &Actors,
    queue: &QueueName,
    endpoint: &Endpoint,
    part: Part,
    act: Act,
) -> VictimAnswer {
    let (subject, environment) =
        (Arc::clone(&actors.subject), actors.environment.clone());
    let (url, queue) = (endpoint.url().to_owned(), queue.clone());
    let clock = actors.clock.clone();
    let life = async move {
        let queue = subject.connect(&url, &queue, &environment).await?;
        act(Victim { queue, clock, part }).await
    };
    let (answer, answered) = oneshot::channel();
    let (death, died) = oneshot::channel::<()>();
    let panics = actors.panics.clone();
    let thread = std::thread::spawn(move || {
        let until_dead = async {
            tokio::select! {
                result = life => drop(answer.send(result)),
                _ = died => {}
            }
        };
        panics.on_this_thread(until_dead).expect("the system gives a runtime");
    });
    let answer_of_victim = tokio::select! {
        biased;
        () = endpoint.gone() => VictimAnswer::Nothing,
        result = answered => result.map_or(VictimAnswer::Nothing, VictimAnswer::Answer),
        () = pump(actors) => VictimAnswer::Silence,
    };
    drop(death);
    thread.join().expect("an act does not panic");
    answer_of_victim
}

/// Advances the clock whenever no command is sent any more; gives up after the limit.
pub(crate) async fn pump(actors: &Actors) {
    let start = Instant::now();
    let mut seen = actors.proxy.steps().len();
    while start.elapsed() < LIMIT {
        sleep(QUIET).await;
        let steps = actors.proxy.steps().len();
        if steps == seen {
            actors.clock.advance_to_next();
        }
        seen = steps;
    }
}
