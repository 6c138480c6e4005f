//! One run of a scene on a real store. The run stops whenever the next command of each
//! actor waits for a decision, or the actor has ended.

mod choices;
mod digest;
mod effects;
mod end;
mod start;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::{Error, Queue, capabilities::Capabilities, operator::PeekRequest};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{
    choice::Choice,
    faults::Faults,
    history::History,
    store::{Held, SteppedStore},
};
use crate::{
    proxy::StepRecord,
    spec::{
        caller::{Caller, Pushes},
        operation::{Operation, STATES, Who},
        recorded::Reply,
    },
};

/// The time limit for every actor to reach its next command (R21).
const LIMIT: Duration = Duration::from_secs(20);

/// One decision of the search, and its effect.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) choice: Choice,
    pub(super) command: String,
    /// The calls that returned after the decision, with their replies.
    pub(super) returned: Vec<(Who, String)>,
    /// The state of each job after the decision. Empty unless the run is drawn.
    pub(super) jobs: String,
}

/// The store and the actors of one run.
pub(super) struct World {
    store: Arc<dyn SteppedStore>,
    actors: BTreeMap<Who, Actor>,
    /// Reads the queue during the run, and makes the calls at its end.
    witness: Caller,
    /// The steps of time in the scene that are still to come.
    time: Vec<Operation>,
    shared: Arc<Shared>,
    can: Capabilities,
    /// The numbers of the scene's batches.
    batches: BTreeSet<u8>,
    faults_left: Faults,
    /// The commands that the server held when an actor froze.
    frozen: Vec<Vec<Held>>,
    /// How many actors died whose late step has not arrived.
    late: usize,
    pub(super) events: Vec<Event>,
}

struct Actor {
    name: String,
    task: Option<JoinHandle<()>>,
}

/// The state that the actors of a run share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    history: History,
    pushes: Pushes,
    /// The actors that have made all their calls, or that have died.
    ended: Vec<Who>,
    /// The actors that are dying. Replies that arrive now do not count.
    dying: Vec<Who>,
    /// The actors whose current call has sent a command.
    sent: BTreeSet<Who>,
}

impl World {
    pub(super) fn capabilities(&self) -> &Capabilities {
        &self.can
    }

    /// Waits until each actor has ended, or waits: for a decision about its next
    /// command, or for something else. Returns the commands that wait for a decision.
    async fn settle_down(&mut self) -> Result<Vec<StepRecord>, String> {
        if let Some(connections) = self.store.connections() {
            let idle = timeout(LIMIT, connections.idle()).await;
            idle.map_err(|_| "HANG, R21: the actors never wait".to_owned())??;
            return Ok(sorted(self.store.parked(0).await));
        }
        let mut changed = self.shared.changed.subscribe();
        let waiting = async {
            loop {
                changed.borrow_and_update();
                let parked = self.store.parked(0).await;
                let ended = self.shared.state().ended.clone();
                let is_still = |(who, actor): (&Who, &Actor)| {
                    ended.contains(who)
                        || parked.iter().any(|step| step.actor == actor.name)
                };
                if self.actors.iter().all(is_still) {
                    return parked;
                }
                tokio::select! {
                    _ = self.store.parked(parked.len() + 1) => {}
                    _ = changed.changed() => {}
                }
            }
        };
        let parked = timeout(LIMIT, waiting).await;
        parked.map_err(|_| {
            let ended = self.shared.state().ended.clone();
            let hanging = self.actors.keys().filter(|who| !ended.contains(who));
            format!("HANG, R21: calls of {:?} end nowhere", hanging.collect::<Vec<_>>())
        })
    }

    /// Adds the state of each job to the last event, for the picture.
    pub(super) async fn show_jobs(&mut self) {
        let places = places(&*self.witness.queue);
        let name = format!("{:?}", Who::Nobody);
        let passing = async {
            loop {
                let parked = self.store.parked(0).await;
                for step in parked.iter().filter(|step| step.actor == name) {
                    if let Err(wrong) = self.store.pass(step) {
                        return wrong;
                    }
                }
                tokio::task::yield_now().await;
            }
        };
        let jobs = tokio::select! {
            places = places => places.unwrap_or_else(|error| error.full_message()),
            wrong = passing => wrong,
        };
        if let Some(event) = self.events.last_mut() {
            event.jobs = jobs;
        }
    }
}

/// Sorted by actor and connection. An actor whose claim waits may have commands on two
/// connections that it opened one after the other at the same moment. The numbers of
/// these connections are the same in each run, and those of the commands are by chance.
fn sorted(mut parked: Vec<StepRecord>) -> Vec<StepRecord> {
    parked.sort_by_key(|step| (step.actor.clone(), step.connection, step.step));
    parked
}

/// Returns the payload and the state of each job in the queue, as text.
async fn places(queue: &dyn Queue) -> Result<String, Error> {
    let mut places = Vec::new();
    for state in STATES {
        let ask = PeekRequest::new(state, NonZeroU32::new(100).expect("not zero"));
        for job in queue.peek(&ask).await?.jobs {
            let payload = String::from_utf8_lossy(&job.payload).into_owned();
            places.push(format!("{payload} {}", state.as_str()));
        }
    }
    places.sort();
    let finished = queue.stats().await?.finished;
    Ok(format!("{}; {finished} finished", places.join(", ")))
}

impl Shared {
    /// Records the end of a call. Does nothing if the actor is dying, and returns
    /// whether it lives.
    fn ends(&self, who: Who, number: usize, replies: Vec<Reply>) -> bool {
        let mut state = self.state();
        let lives = !state.dying.contains(&who);
        if lives {
            state.history.ends(number, replies);
        }
        lives
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for actor in self.actors.values() {
            if let Some(task) = &actor.task {
                task.abort();
            }
        }
    }
}
