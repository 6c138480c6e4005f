//! One run of a scene on a real server. It stops whenever each actor has a command that
//! waits for a decision, or has ended.

mod digest;
mod start;

use std::{
    collections::BTreeMap,
    str::FromStr as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::capabilities::Capabilities;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{
    caller::{Caller, Pushes},
    choice::Choice,
    history::{History, Recorded},
};
use crate::{
    proxy::{Endpoint, Fault, FaultProxy, StepRecord, VirtualClock},
    spec::{
        draft,
        operation::{Act, Operation, Who},
        tape::{RecordedCall, Reply, returned},
    },
};

/// The time limit for every actor to reach its next command (R21).
const LIMIT: Duration = Duration::from_secs(20);

/// Rounds at the end in which all leases and delays end, and the queue is drained.
const ROUNDS: usize = 2;

/// One decision of the search, and what followed from it.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) choice: Choice,
    pub(super) command: String,
    /// The calls that returned because of the decision, and their replies.
    pub(super) returned: Vec<(Who, String)>,
    /// The stats after the decision. Empty unless the run is to be drawn.
    pub(super) jobs: String,
}

/// The server, the actors and the clock of one run.
pub(super) struct World {
    proxy: FaultProxy,
    clock: VirtualClock,
    actors: BTreeMap<Who, Actor>,
    witness: Caller,
    /// The steps of time that are still to come.
    time: Vec<Operation>,
    shared: Arc<Shared>,
    can: Capabilities,
    deaths_left: usize,
    pub(super) events: Vec<Event>,
}

struct Actor {
    endpoint: Endpoint,
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
    /// The actors whose program has ended, or who died.
    ended: Vec<Who>,
    /// The actors whose death has begun. They learn nothing more.
    dying: Vec<Who>,
    /// The number of an actor's steps when its current call began.
    steps: BTreeMap<Who, u32>,
}

impl World {
    pub(super) fn capabilities(&self) -> &Capabilities {
        &self.can
    }

    /// Completes once each actor's next command waits, or the actor has ended. Returns
    /// the commands that wait.
    async fn settle_down(&mut self) -> Result<Vec<StepRecord>, String> {
        let mut changed = self.shared.changed.subscribe();
        let waiting = async {
            loop {
                changed.borrow_and_update();
                let parked = self.proxy.parked(0).await;
                let ended = self.shared.state().ended.clone();
                let is_still = |(who, actor): (&Who, &Actor)| {
                    ended.contains(who)
                        || parked.iter().any(|step| step.actor == actor.name)
                };
                if self.actors.iter().all(is_still) {
                    return parked;
                }
                tokio::select! {
                    _ = self.proxy.parked(parked.len() + 1) => {}
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

    /// The decisions that are possible now. There is none when the scene has ended.
    pub(super) async fn choices(&mut self) -> Result<Vec<Choice>, String> {
        let parked = self.settle_down().await?;
        let with_command: Vec<_> = self
            .actors
            .iter()
            .filter(|(_, actor)| parked.iter().any(|step| step.actor == actor.name))
            .map(|(who, _)| *who)
            .collect();
        let mut choices: Vec<_> =
            with_command.iter().map(|who| Choice::Pass(*who)).collect();
        if !self.time.is_empty() {
            choices.push(Choice::Time);
        }
        if self.deaths_left > 0 {
            choices.extend(with_command.iter().map(|who| Choice::Die(*who)));
        }
        Ok(choices)
    }

    /// Carries out a decision, and waits until every actor has reached its next command.
    pub(super) async fn apply(&mut self, choice: Choice) -> Result<(), String> {
        let open = self.shared.state().history.open();
        let command = match choice {
            Choice::Time => self.pass_time(),
            Choice::Pass(who) => {
                let step = self.next_step(who).await?;
                self.proxy.pass(&step.actor, step.step);
                step.label()
            }
            Choice::Die(who) => self.kill(who).await?,
        };
        let (returned, jobs) = (Vec::new(), String::new());
        self.events.push(Event { choice, command, returned, jobs });
        self.settle_down().await?;
        let returned = self.shared.state().history.returned(&open);
        self.events.last_mut().expect("it was pushed").returned = returned;
        Ok(())
    }

    /// Adds the stats to the last event.
    pub(super) async fn count_jobs(&mut self) {
        let stats = self.witness.queue.stats();
        let name = format!("{:?}", Who::Nobody);
        let passing = async {
            loop {
                let parked = self.proxy.parked(0).await;
                for step in parked.iter().filter(|step| step.actor == name) {
                    self.proxy.pass(&step.actor, step.step);
                }
                tokio::task::yield_now().await;
            }
        };
        let jobs = tokio::select! {
            stats = stats => match stats {
                Ok(stats) => format!(
                    "ready {} leased {} scheduled {} dead {} finished {}",
                    stats.ready, stats.leased, stats.scheduled, stats.dead, stats.finished,
                ),
                Err(error) => error.full_message(),
            },
            () = passing => String::new(),
        };
        if let Some(event) = self.events.last_mut() {
            event.jobs = jobs;
        }
    }

    fn pass_time(&mut self) -> String {
        let Some(operation) = self.time.pop() else { return String::new() };
        let Act::Advance(step) = operation.act else {
            panic!("`{operation}` is not a step of time")
        };
        self.clock.advance(draft::step(step));
        let mut state = self.shared.state();
        let number = state.history.begins(operation, 0);
        state.history.ends(number, Vec::new());
        format!("{:?} pass", draft::step(step))
    }

    async fn next_step(&self, who: Who) -> Result<StepRecord, String> {
        let name = format!("{who:?}");
        let parked = self.proxy.parked(0).await;
        let step = parked.into_iter().find(|step| step.actor == name);
        step.ok_or_else(|| {
            format!("DETERMINISTIC: {who:?} has no command that waits, and had one")
        })
    }

    async fn kill(&mut self, who: Who) -> Result<String, String> {
        let step = self.next_step(who).await?;
        self.shared.state().dying.push(who);
        self.proxy.inject(&step.actor, step.step, Fault::Before);
        let actor = self.actors.get_mut(&who).expect("it has a command");
        actor.endpoint.gone().await;
        if let Some(task) = actor.task.take() {
            task.abort();
            // The task was aborted, or had ended.
            let _ = task.await;
        }
        self.deaths_left -= 1;
        let mut state = self.shared.state();
        let first = state.steps.get(&who).copied().unwrap_or_default() + 1;
        state.history.dies(who, step.step > first);
        state.ended.push(who);
        drop(state);
        Ok(step.label())
    }

    /// Ends the scene: lets all leases and delays end, recovers and drains. Returns all
    /// calls of the run.
    pub(super) async fn end(mut self) -> Result<History, String> {
        self.proxy.heal().await.map_err(at_proxy)?;
        let unfired = self.proxy.unfired();
        if !unfired.is_empty() {
            return Err(format!("FAULT-FIRED: {unfired:?}"));
        }
        self.look().await;
        self.call("- resume").await;
        for _ in 0..ROUNDS {
            self.call("- advance 4").await;
            self.recover().await;
            self.drain().await;
        }
        self.look().await;
        let troubles = self.proxy.troubles();
        if !troubles.is_empty() {
            return Err(format!("the proxy: {troubles:?}"));
        }
        Ok(std::mem::take(&mut self.shared.state().history))
    }

    async fn recover(&mut self) {
        loop {
            let replies = self.call("- recover 100").await;
            let more = replies.iter().any(
                |reply| matches!(reply, Reply::Recovered(Ok(answer)) if answer.more),
            );
            if !more {
                return;
            }
        }
    }

    /// Claims and settles until no job is left. A class that may pass jobs over is asked
    /// again.
    async fn drain(&mut self) {
        let patience = self.witness.class.patience(MOST_JOBS);
        let mut in_vain = 0;
        while in_vain <= patience {
            let replies = self.call("- claim 100 l0").await;
            let taken = match replies.first() {
                Some(Reply::Claimed(Ok(deliveries))) => deliveries.len(),
                _ => 0,
            };
            if taken == 0 {
                in_vain += 1;
                continue;
            }
            let words: Vec<_> = (0..taken).map(|back| format!("{back}D")).collect();
            self.call(&format!("- settle {}", words.join(","))).await;
        }
    }

    async fn look(&mut self) {
        let stats = Reply::Stats(returned(self.witness.queue.stats().await));
        let audit = Reply::Audit(returned(self.witness.queue.audit().await));
        let look = Recorded::Look([stats, audit]);
        self.shared.state().history.after.push(look);
    }

    async fn call(&mut self, line: &str) -> Vec<Reply> {
        let operation = Operation::from_str(line).expect("a line of the language");
        let replies = match &operation.act {
            Act::Advance(step) => {
                self.clock.advance(draft::step(*step));
                Vec::new()
            }
            _ => {
                let mut pushes = Pushes::default();
                self.witness.act(&operation, 0, &mut pushes).await
            }
        };
        let call = RecordedCall {
            operation,
            payloads: 0,
            replies: replies.clone(),
            is_lost: false,
        };
        self.shared.state().history.after.push(Recorded::Call(call));
        replies
    }
}

/// More jobs than any scene has.
const MOST_JOBS: u64 = 16;

impl Shared {
    /// Records the end of a call, unless the actor is dying: then it learns nothing.
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

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn at_proxy(error: std::io::Error) -> String {
    format!("the proxy: {error}")
}
