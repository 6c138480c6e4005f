//! The actors of one sequence, each with its own connection, and the faults that hit
//! them.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use relq_core::{
    Error, Queue, QueueName,
    capabilities::Capabilities,
    environment::{Clock, Environment, Timestamp},
    error::Effect,
};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{
    operation::{How, InjectedFault, Who},
    recorded::WORKERS,
    sequence::Steps,
};
use crate::{
    Room, Subject,
    harness::environment::seeded,
    proxy::{Behind, Endpoint, Fault, FaultProxy, VirtualClock, When},
    server::Server,
    sweep::BoxFuture,
};

/// The time limit for every call, with any fault (R21).
const LIMIT: Duration = Duration::from_secs(20);

/// The fault that is assumed when [`Actors::next_is_lost`] says that an actor died: its
/// call may have happened.
const DEATH: InjectedFault = InjectedFault { how: How::After, step: 1 };

/// The fault at a call during which a connection broke.
const BREAK: InjectedFault = InjectedFault { how: How::CutAfter, step: 1 };

/// Where the store is: one server for all sequences, with a queue for each sequence, or
/// one directory for each sequence.
pub(crate) enum Site {
    Redis(Server),
    Embedded(TempDir),
}

/// The store of one sequence, its clock, and the actors that use it.
pub(crate) struct Actors {
    /// Opens the queue. `None` if all actors have recorded replies.
    subject: Option<Arc<dyn Subject>>,
    proxy: Option<FaultProxy>,
    /// The endpoint that all actors connect to when there is no proxy.
    endpoint: String,
    clock: VirtualClock,
    environment: Environment,
    queue: QueueName,
    actors: BTreeMap<Who, Actor>,
    born: u32,
    pub(crate) faults_fired: u64,
    /// Whether the actor of the next call dies before it gets the reply.
    pub(crate) next_is_lost: bool,
    /// Whether a connection of the next call's actor breaks during the call.
    pub(crate) next_is_hit: bool,
}

struct Actor {
    queue: Arc<dyn Queue>,
    name: String,
    endpoint: Option<Endpoint>,
}

/// The caller's knowledge about the effect of its call.
#[derive(Debug)]
pub(crate) enum Observed<T> {
    Answer(T),
    /// The call certainly did not happen.
    Undone,
    /// The reply was lost: the call may have happened.
    Lost,
    /// The call did not happen yet. It may happen later, because its command is
    /// delayed.
    Late,
    /// Some steps of the call may have happened, and the others may happen later.
    LostAndLate,
}

/// A call that has ended, and the fault that hit it.
pub(crate) struct Ended<T> {
    /// The result of the call. `None` when the actor died.
    pub(crate) answer: Option<T>,
    fault: Option<InjectedFault>,
}

impl Actors {
    pub(crate) async fn set(
        site: &Site,
        subject: Arc<dyn Subject>,
        queue: QueueName,
        steps: Steps,
    ) -> Result<Self, String> {
        let clock = VirtualClock::new();
        let (proxy, endpoint) = match site {
            Site::Redis(server) => {
                let proxy = proxy(server, &*subject, clock.clone()).await;
                (Some(proxy.map_err(at_the_proxy)?), String::new())
            }
            Site::Embedded(directory) => {
                // The ids of all sequences are equal, so each sequence has its own
                // file.
                let directory = directory.path().join(queue.as_str());
                let made = std::fs::create_dir(&directory);
                made.map_err(|error| format!("{}: {error}", directory.display()))?;
                (None, directory.display().to_string())
            }
        };
        let environment = seeded(&clock, 1).with_max_jobs_per_step(steps.max_jobs());
        let mut actors = Self {
            subject: Some(subject),
            proxy,
            endpoint,
            clock,
            environment,
            queue,
            actors: BTreeMap::new(),
            born: 0,
            faults_fired: 0,
            next_is_lost: false,
            next_is_hit: false,
        };
        actors.actor(Who::Nobody).await?;
        Ok(actors)
    }

    /// Actors whose calls go to `queue`, which returns recorded replies.
    pub(super) fn of_recorded(name: QueueName, queue: &Arc<dyn Queue>) -> Self {
        let clock = VirtualClock::new();
        let actor = |(who, _)| {
            let queue = Arc::clone(queue);
            (who, Actor { queue, name: format!("{who:?}"), endpoint: None })
        };
        Self {
            subject: None,
            proxy: None,
            endpoint: String::new(),
            environment: seeded(&clock, 1),
            clock,
            queue: name,
            actors: WORKERS.into_iter().map(actor).collect(),
            born: 0,
            faults_fired: 0,
            next_is_lost: false,
            next_is_hit: false,
        }
    }

    /// The queue of the actor that no fault hits, for reading the stats and the audit.
    pub(crate) fn witness(&self) -> &dyn Queue {
        &*self.actors[&Who::Nobody].queue
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        self.witness().capabilities()
    }

    /// Removes the files of an embedded store, or does nothing on Redis.
    pub(crate) fn take_down(self) {
        let Self { proxy, endpoint, actors, .. } = self;
        drop(actors);
        if proxy.is_none() {
            // If this directory cannot be removed now, the temporary directory that
            // contains it is removed later.
            let _ = std::fs::remove_dir_all(endpoint);
        }
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// The milliseconds from the clock's start to the time `at`.
    pub(crate) fn since_start(&self, at: Timestamp) -> u64 {
        let elapsed = i64::try_from(self.clock.elapsed().as_millis());
        let start = self.clock.now().unix_ms() - elapsed.unwrap_or(i64::MAX);
        at.unix_ms().saturating_sub(start).unsigned_abs()
    }

    /// The time this many milliseconds after the clock's start.
    pub(crate) fn time_at(&self, since_start: u64) -> Timestamp {
        VirtualClock::new().now().plus(Duration::from_millis(since_start))
    }

    /// Lets an actor make one call, while the given fault hits one of its steps.
    pub(crate) async fn call<T: Send + 'static>(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        act: impl FnOnce(Arc<dyn Queue>) -> BoxFuture<'static, T>,
    ) -> Result<Ended<T>, String> {
        let actor = self.actor(who).await?;
        let (queue, name) = (actor.queue.clone(), actor.name.clone());
        let endpoint = actor.endpoint.clone();
        let (Some(proxy), Some(endpoint)) = (&self.proxy, endpoint) else {
            if std::mem::take(&mut self.next_is_lost) {
                return Ok(Ended { answer: None, fault: Some(DEATH) });
            }
            let answer = timeout(LIMIT, act(queue)).await;
            let answer = Some(answer.map_err(|_| hangs(who))?);
            let fault = std::mem::take(&mut self.next_is_hit).then_some(BREAK);
            return Ok(Ended { answer, fault });
        };
        if let Some(InjectedFault { how, step }) = fault {
            proxy.plan(&name, endpoint.steps() + u32::from(step), how.fault());
        }
        let observed_answer = tokio::select! {
            biased;
            () = endpoint.gone() => None,
            answer = timeout(LIMIT, act(queue)) => Some(answer.map_err(|_| hangs(who))?),
        };
        let fault = fault.filter(|_| proxy.unfired().is_empty());
        proxy.heal().await.map_err(at_the_proxy)?;
        self.faults_fired += u64::from(fault.is_some());
        if fault.is_none_or(|fault| !fault.how.kills()) {
            return Ok(Ended { answer: observed_answer, fault });
        }
        // Close the dead actor's connection, so that it gets no more replies.
        endpoint.gone().await;
        self.actors.remove(&who);
        Ok(Ended { answer: None, fault })
    }

    /// Lets the server execute all commands of dead actors that were held back.
    pub(crate) async fn release(&self) -> Result<(), String> {
        let Some(proxy) = &self.proxy else { return Ok(()) };
        let released = proxy.release_ghosts().await;
        released.map(drop).map_err(at_the_proxy)
    }

    /// The errors of the proxy itself, which are not the backend's.
    pub(crate) fn troubles(&self) -> Vec<String> {
        self.proxy.as_ref().map(FaultProxy::troubles).unwrap_or_default()
    }

    async fn actor(&mut self, who: Who) -> Result<&Actor, String> {
        if !self.actors.contains_key(&who) {
            self.born += 1;
            let name = format!("{who:?}-{}", self.born);
            let endpoint =
                self.proxy.as_ref().map(|proxy| proxy.actor(&name)).transpose();
            let endpoint = endpoint.map_err(at_the_proxy)?;
            let url = endpoint.as_ref().map(|it| it.url().to_owned());
            let url = url.as_ref().unwrap_or(&self.endpoint);
            let subject = self.subject.as_ref().ok_or("a record opens no queue")?;
            let opened = subject.connect(url, &self.queue, &self.environment).await;
            let queue = opened.map_err(|error| error.full_message())?;
            self.actors.insert(who, Actor { queue, name, endpoint });
        }
        Ok(&self.actors[&who])
    }
}

impl<T> Ended<T> {
    /// Replaces the result of the call by `part`, one half of it, and keeps the fault.
    /// `settle_and_claim` has two results, which are checked one by one.
    pub(crate) fn part<U>(&self, part: Option<U>) -> Ended<U> {
        Ended { answer: part, fault: self.fault }
    }

    /// Whether a fault fired at the call.
    pub(crate) fn has_fault(&self) -> bool {
        self.fault.is_some()
    }

    /// Whether the actor died.
    pub(crate) fn is_dead(&self) -> bool {
        self.fault.is_some_and(|fault| fault.how.kills())
    }
}

impl<T> Ended<Result<T, Error>> {
    /// Derives from the end of the call whether the call happened (R21).
    pub(crate) fn observed_answer(self) -> Result<Observed<T>, String> {
        let Some(answer) = self.answer else {
            return Ok(match self.fault {
                Some(InjectedFault { how: How::Before, step: 1 }) => Observed::Undone,
                Some(InjectedFault { how: How::Ghost, step: 1 }) => Observed::Late,
                Some(InjectedFault { how: How::Ghost, .. }) => Observed::LostAndLate,
                _ => Observed::Lost,
            });
        };
        match answer {
            Ok(answer) => Ok(Observed::Answer(answer)),
            Err(error) if self.fault.is_none() => {
                Err(format!("R21: an error with no fault: {}", error.full_message()))
            }
            Err(error) if error.effect() == Effect::No => Ok(Observed::Undone),
            Err(_) => Ok(Observed::Lost),
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

/// Starts a proxy, prepared by the subject, before the server. If the server has room
/// for one queue only, it is emptied first.
async fn proxy(
    server: &Server,
    subject: &dyn Subject,
    clock: VirtualClock,
) -> io::Result<FaultProxy> {
    let proxy = FaultProxy::start(server.address(), clock)?;
    subject.prepare(&proxy).await?;
    if subject.room() == Room::OneQueue {
        proxy.tell(&["FLUSHALL"]).await?;
    }
    Ok(proxy)
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn at_the_proxy(error: std::io::Error) -> String {
    format!("the proxy: {error}")
}

fn hangs(who: Who) -> String {
    format!("HANG, R21: a call of {who:?} does not end")
}
