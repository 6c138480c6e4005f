//! The actors of one sequence, each with a connection of its own, and what strikes
//! them.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use queue_core::{Capabilities, Clock, Environment, Error, Happened, Queue, QueueName};
use tempfile::TempDir;
use tokio::time::timeout;

use super::operation::{How, Strike, Who};
use crate::{
    Room, Subject,
    environment::SeededRandomness,
    fault::{Behind, Endpoint, Fault, Gate, VirtualClock, When},
    server::Server,
    steps::BoxFuture,
};

/// No call may take longer, however it is struck (R21).
const LIMIT: Duration = Duration::from_secs(20);

/// Where the store is: one server for all sequences, each of which has a queue of its
/// own, or a directory for each.
pub(crate) enum Site {
    Redis(Server),
    Embedded(TempDir),
}

/// The store, its time, and who acts on it.
pub(crate) struct Stage {
    subject: Arc<dyn Subject>,
    gate: Option<Gate>,
    /// What actors connect to where there is no gate.
    endpoint: String,
    clock: VirtualClock,
    environment: Environment,
    queue: QueueName,
    actors: BTreeMap<Who, Actor>,
    born: u32,
    pub(crate) faults_fired: u64,
}

struct Actor {
    queue: Arc<dyn Queue>,
    name: String,
    endpoint: Option<Endpoint>,
}

/// What was heard of a call.
#[derive(Debug)]
pub(crate) enum Heard<T> {
    Answer(T),
    /// It surely did not happen.
    Undone,
    /// It may have happened.
    Lost,
    /// It happens later, if at all.
    Late,
    /// It may have happened, and the rest of it may happen later.
    LostAndLate,
}

/// How a call ended, before anyone looks at its answer.
pub(crate) struct Ended<T> {
    /// None when the actor died.
    pub(crate) answer: Option<T>,
    strike: Option<Strike>,
}

impl Stage {
    pub(crate) async fn set(
        site: &Site,
        subject: Arc<dyn Subject>,
        queue: QueueName,
    ) -> Result<Self, String> {
        let clock = VirtualClock::new();
        let (gate, endpoint) = match site {
            Site::Redis(server) => {
                let gate = gate(server, &*subject, clock.clone()).await;
                (Some(gate.map_err(at_the_gate)?), String::new())
            }
            Site::Embedded(directory) => {
                // Randomness repeats itself, and so no two sequences share a file.
                let directory = directory.path().join(queue.as_str());
                let made = std::fs::create_dir(&directory);
                made.map_err(|error| format!("{}: {error}", directory.display()))?;
                (None, directory.display().to_string())
            }
        };
        let random = Arc::new(SeededRandomness::new(1));
        let environment = Environment::new(Arc::new(clock.clone()), random);
        let mut stage = Self {
            subject,
            gate,
            endpoint,
            clock,
            environment,
            queue,
            actors: BTreeMap::new(),
            born: 0,
            faults_fired: 0,
        };
        stage.actor(Who::Nobody).await?;
        Ok(stage)
    }

    /// The actor who is never struck.
    pub(crate) fn witness(&self) -> &dyn Queue {
        &*self.actors[&Who::Nobody].queue
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        self.witness().capabilities()
    }

    /// Removes what an embedded store has written.
    pub(crate) fn strike_set(self) {
        let Self { gate, endpoint, actors, .. } = self;
        drop(actors);
        if gate.is_none() {
            // What cannot be removed goes with the directory around it.
            let _ = std::fs::remove_dir_all(endpoint);
        }
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// How long after the clock's start a time is, in milliseconds.
    pub(crate) fn since_start(&self, at: queue_core::Timestamp) -> u64 {
        let elapsed = i64::try_from(self.clock.elapsed().as_millis());
        let start = self.clock.now().unix_ms() - elapsed.unwrap_or(i64::MAX);
        at.unix_ms().saturating_sub(start).unsigned_abs()
    }

    /// Has an actor make a call, struck as it says.
    pub(crate) async fn call<T: Send + 'static>(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        act: impl FnOnce(Arc<dyn Queue>) -> BoxFuture<'static, T>,
    ) -> Result<Ended<T>, String> {
        let actor = self.actor(who).await?;
        let (queue, name) = (actor.queue.clone(), actor.name.clone());
        let endpoint = actor.endpoint.clone();
        let (Some(gate), Some(endpoint)) = (&self.gate, endpoint) else {
            let answer = timeout(LIMIT, act(queue)).await;
            let answer = Some(answer.map_err(|_| hangs(who))?);
            return Ok(Ended { answer, strike: None });
        };
        if let Some(Strike { how, step }) = strike {
            gate.plan(&name, endpoint.steps() + u32::from(step), how.fault());
        }
        let heard = tokio::select! {
            biased;
            () = endpoint.gone() => None,
            answer = timeout(LIMIT, act(queue)) => Some(answer.map_err(|_| hangs(who))?),
        };
        let strike = strike.filter(|_| gate.unfired().is_empty());
        gate.heal().await.map_err(at_the_gate)?;
        self.faults_fired += u64::from(strike.is_some());
        if strike.is_none_or(|strike| !strike.how.kills()) {
            return Ok(Ended { answer: heard, strike });
        }
        // What the dead would have said is heard by nobody.
        endpoint.gone().await;
        self.actors.remove(&who);
        Ok(Ended { answer: None, strike })
    }

    /// Has all run that was on its way.
    pub(crate) async fn release(&self) -> Result<(), String> {
        let Some(gate) = &self.gate else { return Ok(()) };
        let released = gate.release_ghosts().await;
        released.map(drop).map_err(at_the_gate)
    }

    /// What went wrong at the gate itself.
    pub(crate) fn troubles(&self) -> Vec<String> {
        self.gate.as_ref().map(Gate::troubles).unwrap_or_default()
    }

    async fn actor(&mut self, who: Who) -> Result<&Actor, String> {
        if !self.actors.contains_key(&who) {
            self.born += 1;
            let name = format!("{who:?}-{}", self.born);
            let endpoint = self.gate.as_ref().map(|gate| gate.actor(&name)).transpose();
            let endpoint = endpoint.map_err(at_the_gate)?;
            let url = endpoint.as_ref().map(|it| it.url().to_owned());
            let url = url.as_ref().unwrap_or(&self.endpoint);
            let opened =
                self.subject.connect(url, &self.queue, &self.environment).await;
            let queue = opened.map_err(|error| error.full_message())?;
            self.actors.insert(who, Actor { queue, name, endpoint });
        }
        Ok(&self.actors[&who])
    }
}

impl<T> Ended<T> {
    /// The same end with a part of the answer.
    pub(crate) fn part<U>(&self, part: Option<U>) -> Ended<U> {
        Ended { answer: part, strike: self.strike }
    }

    /// Whether a fault fired at it.
    pub(crate) fn is_struck(&self) -> bool {
        self.strike.is_some()
    }

    /// Whether the actor died.
    pub(crate) fn is_dead(&self) -> bool {
        self.strike.is_some_and(|strike| strike.how.kills())
    }
}

impl<T> Ended<Result<T, Error>> {
    /// What that tells of the call (R21).
    pub(crate) fn heard(self) -> Result<Heard<T>, String> {
        let Some(answer) = self.answer else {
            return Ok(match self.strike {
                Some(Strike { how: How::Before, step: 1 }) => Heard::Undone,
                Some(Strike { how: How::Ghost, step: 1 }) => Heard::Late,
                Some(Strike { how: How::Ghost, .. }) => Heard::LostAndLate,
                _ => Heard::Lost,
            });
        };
        match answer {
            Ok(answer) => Ok(Heard::Answer(answer)),
            Err(error) if self.strike.is_none() => {
                Err(format!("R21: an error with no fault: {}", error.full_message()))
            }
            Err(error) if error.happened() == Happened::No => Ok(Heard::Undone),
            Err(_) => Ok(Heard::Lost),
        }
    }
}

impl How {
    fn kills(self) -> bool {
        matches!(self, Self::Before | Self::After | Self::Ghost)
    }

    fn fault(self) -> Fault {
        match self {
            Self::Before => Fault::Before,
            Self::After => Fault::After(Behind::Dropped),
            Self::Ghost => Fault::Ghost,
            Self::CutBefore => Fault::Cut(When::Before),
            Self::CutAfter => Fault::Cut(When::After),
            Self::Loading => Fault::Error("LOADING the suite says so".to_owned()),
            Self::OutOfMemory => Fault::Error("OOM the suite says so".to_owned()),
        }
    }
}

/// A gate that is prepared, before a server on which there is room for one more queue.
async fn gate(
    server: &Server,
    subject: &dyn Subject,
    clock: VirtualClock,
) -> io::Result<Gate> {
    let gate = Gate::start(server.address(), clock)?;
    subject.prepare(&gate).await?;
    if subject.room() == Room::OneQueue {
        gate.tell(&["FLUSHALL"]).await?;
    }
    Ok(gate)
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn at_the_gate(error: std::io::Error) -> String {
    format!("the gate: {error}")
}

fn hangs(who: Who) -> String {
    format!("R21: a call of {who:?} hangs")
}
