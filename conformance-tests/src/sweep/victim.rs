//! The victim: the actor that the fault hits.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Deref,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use relq_core::{
    Error, JobId, Queue, QueueName, Receipt, WorkerId, environment::Timestamp,
};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout},
};

use super::{actors::Actors, scenarios::Scenario};
use crate::{
    harness::{call_log::CallLog, logged_queue::LoggedQueue},
    proxy::{Endpoint, VirtualClock},
    spec::{
        caller::{Caller, Pushes},
        operation::Operation,
        recorded::Reply,
    },
};

/// The time limit for the calls of a victim, whatever fault hits it (R21).
const LIMIT: Duration = Duration::from_secs(20);

/// How long the victim must have sent nothing before the clock is advanced.
const QUIET: Duration = Duration::from_millis(4);

/// After how long a victim that sends nothing counts as idle although a command has no
/// reply. A client that a fault has killed may leave such a command behind.
const UNANSWERED: Duration = Duration::from_millis(250);

/// The actor that the fault hits: its queue, its clock, its worker id and its jobs.
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

impl Victim {
    /// Makes the calls of operations, each with the number of payloads before it, until
    /// one fails. Of a call with two results, the first decides.
    pub(super) async fn make(
        self,
        operations: Vec<(Operation, usize)>,
    ) -> Result<(), Error> {
        let Part { worker, receipts, jobs, scene_began, .. } = self.part;
        let mut caller = Caller::of_worker(worker, self.queue);
        caller.receipts = receipts;
        caller.scene_began = scene_began;
        let mut pushes = Pushes::default();
        pushes.ids = jobs.into_iter().map(Some).collect();
        for (operation, payloads) in operations {
            let replies = caller.act(&operation, payloads, &mut pushes).await;
            let failed = replies.into_iter().next().and_then(Reply::into_error);
            if let Some(error) = failed {
                return Err(Arc::into_inner(error).expect("nothing else has the error"));
            }
        }
        Ok(())
    }
}

/// The state of a victim besides its queue and its clock: its worker id, its receipts, the
/// ids of the jobs, when the setup began, and a record of the jobs that it runs.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) worker: WorkerId,
    /// The receipts of all claims of the worker, the newest last.
    pub(crate) receipts: Vec<Receipt>,
    /// The ids of the jobs that the setup pushed, in the order of their pushes.
    pub(crate) jobs: Vec<JobId>,
    /// When the setup began, by the store's clock.
    pub(crate) scene_began: Timestamp,
    /// The jobs that the victim has run. Empty if the victim is not a worker but only
    /// makes single calls.
    pub(crate) ran: Ran,
}

impl Part {
    /// The newest receipt of each job that the worker has claimed.
    pub(crate) fn newest_receipts(&self) -> Vec<Receipt> {
        let newest = self.receipts.iter().map(|one| (one.job(), one));
        newest.collect::<BTreeMap<_, _>>().into_values().cloned().collect()
    }
}

type Tell = Arc<dyn Fn(&Bytes) + Send + Sync>;

/// The payloads of the jobs that were run, kept outside the store.
#[derive(Clone, Default)]
pub(crate) struct Ran {
    payloads: Arc<watch::Sender<Vec<Bytes>>>,
    /// Called with each payload, so that a process that outlives the victim records it.
    /// `None` if the victim runs in this process.
    tell: Option<Tell>,
}

impl Ran {
    /// Makes an empty record that calls `tell` with the payload of each job when the
    /// job runs.
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

    /// Completes when jobs with `count` different payloads have run.
    pub(crate) async fn different(&self, count: u32) {
        let is_enough = |ran: &Vec<Bytes>| {
            ran.iter().collect::<BTreeSet<_>>().len() >= count as usize
        };
        // This wait cannot fail: the channel stays open, because its sender lives as
        // long as `self`.
        let _ = self.payloads.subscribe().wait_for(is_enough).await;
    }
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ran").field(&self.payloads()).finish()
    }
}

/// How a victim ended.
#[derive(Debug)]
pub(crate) enum VictimAnswer {
    Answer(Result<(), Error>),
    /// The victim died, or could not connect.
    Nothing,
    /// The victim neither returned nor died within the limit. The text names its calls.
    Silence(String),
}

/// Makes the calls of a victim through `endpoint`, until they return or the victim
/// dies. The clock stands still until `time_passes`.
pub(crate) async fn act(
    actors: &Actors,
    queue: &QueueName,
    endpoint: &Endpoint,
    (part, time_passes): (Part, watch::Receiver<bool>),
    scenario: &'static Scenario,
) -> VictimAnswer {
    let (subject, environment) =
        (Arc::clone(&actors.subject), actors.environment.clone());
    let (url, queue) = (endpoint.url().to_owned(), queue.clone());
    let clock = actors.clock.clone();
    let calls = CallLog::default();
    let noted = calls.clone();
    let life = async move {
        let queue = subject.connect(&url, &queue, &environment).await?;
        let queue = Arc::new(LoggedQueue::new(queue, "the victim", noted));
        scenario.act(Victim { queue, clock, part }).await
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
        () = pump(actors, time_passes) => VictimAnswer::Silence(calls.to_string()),
    };
    drop(death);
    thread.join().expect("an act does not panic");
    answer_of_victim
}

/// Advances the clock whenever the victim has the replies to its commands and has sent
/// nothing for [`QUIET`], so that its waits end, but not before `time_passes`. Gives up
/// after [`LIMIT`].
pub(crate) async fn pump(actors: &Actors, mut time_passes: watch::Receiver<bool>) {
    let start = Instant::now();
    // An error means that the other actors have made their calls.
    let _ = timeout(LIMIT, time_passes.wait_for(|it| *it)).await;
    let mut seen = actors.proxy.step_count();
    while start.elapsed() < LIMIT {
        let began = Instant::now();
        let quiet = timeout(UNANSWERED, actors.proxy.quiet(QUIET)).await;
        // If this task was woken late, the victim may have had no time to go on either.
        let is_idle = quiet.is_ok() || began.elapsed() < 2 * UNANSWERED;
        let steps = actors.proxy.step_count();
        if steps == seen && is_idle {
            actors.clock.advance_to_next();
        }
        seen = steps;
    }
}
