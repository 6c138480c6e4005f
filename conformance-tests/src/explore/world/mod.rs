//! One run of a scene on a real store. The run stops whenever the next command of each
//! actor waits for a decision, or the actor has ended.

mod digest;
mod start;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    str::FromStr as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::{
    Error, Queue, capabilities::Capabilities, environment::Clock as _,
    operator::PeekRequest,
};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{
    choice::{Choice, WaitingStep},
    faults::Faults,
    history::{History, Recorded},
    search::Pruning,
    store::{Connections, Held, SteppedStore},
};
use crate::{
    proxy::{StepRecord, When},
    spec::{
        caller::{Caller, Pushes},
        operation::{Act, Operation, STATES, Who},
        tape::{Look, RecordedCall, Reply},
    },
};

/// The time limit for every actor to reach its next command (R21).
const LIMIT: Duration = Duration::from_secs(20);

/// How many times the end of a run lets all leases and delays end and drains the queue.
/// A scene with batches needs one more, for the jobs that their completions push.
const ROUNDS: usize = 2;

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

    /// Returns the decisions that are possible now, or none if the scene has ended.
    ///
    /// If no command waits but a call is running, the only decision is that time passes
    /// until the next sleep ends.
    ///
    /// If a step is independent of all others, running it is the only decision, unless
    /// the search prunes nothing: all other decisions lead to the same states after
    /// this step.
    pub(super) async fn choices(
        &mut self,
        pruning: Pruning,
    ) -> Result<Vec<Choice>, String> {
        let parked = self.settle_down().await?;
        let steps = self.waiting_steps(&parked);
        let is_independent =
            |(_, step): &&(WaitingStep, &StepRecord)| self.store.is_independent(step);
        if pruning == Pruning::KnownStates
            && let Some((waiting, _)) = steps.iter().find(is_independent)
        {
            return Ok(vec![Choice::Pass(*waiting)]);
        }
        let can_run = steps.iter().filter(|(_, step)| self.store.can_run(step));
        let mut choices: Vec<_> = can_run.map(|it| Choice::Pass(it.0)).collect();
        if choices.is_empty() && !steps.is_empty() {
            return Err(format!("DEADLOCK, R21: no step can run: {steps:?}"));
        }
        if !self.time.is_empty() {
            choices.push(Choice::Time);
        }
        if self.late > 0 {
            choices.push(Choice::Arrive);
        }
        if choices.is_empty() && self.has_open_call() {
            if self.store.clock().next_in().is_none() {
                return Err("HANG, R21: calls wait for nothing".to_owned());
            }
            choices.push(Choice::Time);
        }
        if !choices.is_empty() {
            let steps: Vec<_> = steps.iter().map(|it| it.0).collect();
            self.add_faults(&steps, &mut choices);
        }
        Ok(choices)
    }

    /// Returns a decision for each other answer that the server may give to a waiting
    /// step. Some commands, such as `RANDOMKEY`, have random answers.
    pub(super) async fn draws(&mut self) -> Result<Vec<Choice>, String> {
        let parked = self.settle_down().await?;
        let mut choices = Vec::new();
        let Some(connections) = self.store.connections() else { return Ok(choices) };
        if self.faults_left.draws == 0 {
            return Ok(choices);
        }
        for (waiting, step) in self.waiting_steps(&parked) {
            let draws = connections.draws(step).await?.into_iter().skip(1);
            choices.extend(draws.map(|draws| Choice::Draw(waiting, draws)));
        }
        Ok(choices)
    }

    /// Returns the waiting steps with their numbers, sorted by actor.
    fn waiting_steps<'a>(
        &self,
        parked: &'a [StepRecord],
    ) -> Vec<(WaitingStep, &'a StepRecord)> {
        let of_actor = |(who, actor): (&Who, &Actor)| {
            let steps = parked.iter().filter(|step| step.actor == actor.name);
            let steps = steps.enumerate().map(|(at, step)| ((*who, at), step));
            steps.collect::<Vec<_>>()
        };
        self.actors.iter().flat_map(of_actor).collect()
    }

    /// Whether a living actor has not ended.
    fn has_open_call(&self) -> bool {
        let state = self.shared.state();
        self.actors.keys().any(|who| !state.ended.contains(who))
    }

    fn add_faults(&self, steps: &[WaitingStep], choices: &mut Vec<Choice>) {
        let Faults { deaths, late, cuts, .. } = self.faults_left;
        let held = self.store.connections().map(Connections::held).unwrap_or_default();
        for who in self.actors.keys().filter(|_| deaths > 0) {
            let has_step = steps.iter().any(|(of, _)| of == who);
            let is_held = held.iter().any(|held| held.actor == format!("{who:?}"));
            if has_step || is_held {
                choices.push(Choice::Die(*who));
            }
            if is_held {
                choices.push(Choice::Freeze(*who));
            }
        }
        if self.store.connections().is_none() {
            return;
        }
        let may_be_late = |step: &&WaitingStep| late > 0 && self.may_be_late(step.0);
        choices.extend(steps.iter().filter(may_be_late).copied().map(Choice::Late));
        for step in steps.iter().copied().filter(|_| cuts > 0) {
            choices.extend([Choice::Cut(step), Choice::Lose(step)]);
        }
    }

    /// Whether the next step of this actor may run after its death. It may not if it
    /// belongs to a push that has sent a step before: the judge could not tell the two
    /// steps apart.
    fn may_be_late(&self, who: Who) -> bool {
        let state = self.shared.state();
        let Some(at) = state.history.call_of(who) else { return true };
        let act = &state.history.overlapping[at].call.operation.act;
        let stores = matches!(
            act,
            Act::Push { .. }
                | Act::Repeat { .. }
                | Act::Add { .. }
                | Act::CreateBatch { .. }
                | Act::Tick { .. }
        );
        !(stores && state.sent.contains(&who))
    }

    /// Carries out a decision, and waits until every actor has reached its next command.
    pub(super) async fn apply(&mut self, choice: Choice) -> Result<(), String> {
        let open = self.shared.state().history.open();
        let command = self.carry_out(choice).await?;
        self.faults_left.takes(choice);
        let (returned, jobs) = (Vec::new(), String::new());
        self.events.push(Event { choice, command, returned, jobs });
        self.settle_down().await?;
        self.store.check()?;
        let returned = self.shared.state().history.returned(&open);
        self.events.last_mut().expect("it was pushed").returned = returned;
        Ok(())
    }

    /// Carries out a decision. Returns the label of the command that it is about.
    async fn carry_out(&mut self, choice: Choice) -> Result<String, String> {
        Ok(match choice {
            Choice::Time => self.pass_time(),
            Choice::Pass(waiting) => {
                let step = self.next_step(waiting).await?;
                self.store.pass(&step)?;
                self.shared.state().sent.insert(waiting.0);
                step.label()
            }
            Choice::Draw(waiting, draws) => {
                let step = self.next_step(waiting).await?;
                self.connections()?.pass_drawing(&step, draws);
                self.shared.state().sent.insert(waiting.0);
                step.label()
            }
            Choice::Cut(waiting) => self.cut(waiting, When::Before).await?,
            Choice::Lose(waiting) => self.cut(waiting, When::After).await?,
            Choice::Die(who) | Choice::Freeze(who) | Choice::Late((who, _)) => {
                self.kill(who, choice).await?
            }
            Choice::Arrive => {
                self.connections()?.arrive().await?;
                self.late = 0;
                self.shared.state().history.late_arrives();
                "late commands run".to_owned()
            }
        })
    }

    fn connections(&self) -> Result<&dyn Connections, String> {
        let none = || "this store has no connections to break".to_owned();
        self.store.connections().ok_or_else(none)
    }

    async fn cut(
        &mut self,
        waiting: WaitingStep,
        when: When,
    ) -> Result<String, String> {
        let step = self.next_step(waiting).await?;
        self.connections()?.cut(&step, when);
        let mut state = self.shared.state();
        state.sent.insert(waiting.0);
        state.history.is_hit(waiting.0);
        Ok(step.label())
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

    /// Lets time pass: the scene's next step of time, or the time until the next sleep
    /// ends.
    fn pass_time(&mut self) -> String {
        let clock = self.store.clock();
        let operation = self.time.pop().unwrap_or_else(|| Operation {
            who: Who::Nobody,
            act: Act::AdvanceBy(clock.next_in().unwrap_or_default()),
            fault: None,
        });
        let time = operation.time().expect("a step of time");
        clock.advance(time);
        let now = clock.elapsed();
        let mut state = self.shared.state();
        let number = state.history.begins(Who::Nobody, (operation, 0), now);
        state.history.ends(number, Vec::new());
        format!("{time:?} pass")
    }

    async fn next_step(&self, (who, at): WaitingStep) -> Result<StepRecord, String> {
        let step = self.steps_of(who).await.into_iter().nth(at);
        step.ok_or_else(|| {
            format!("DETERMINISTIC: {who:?} has no command that waits, and had one")
        })
    }

    async fn steps_of(&self, who: Who) -> Vec<StepRecord> {
        let name = format!("{who:?}");
        let mut parked = sorted(self.store.parked(0).await);
        parked.retain(|step| step.actor == name);
        parked
    }

    /// Ends an actor. Returns the labels of its waiting commands.
    async fn kill(&mut self, who: Who, death: Choice) -> Result<String, String> {
        let steps = self.steps_of(who).await;
        let has_sent = self.shared.state().sent.contains(&who);
        self.shared.state().dying.push(who);
        let task = self.actors.get_mut(&who).and_then(|actor| actor.task.take());
        // On a server, end the connections before the client is dropped, because the
        // client would close them itself.
        self.end_connections(who, death, &steps).await?;
        if let Some(task) = task {
            task.abort();
            // The result does not matter: the task was aborted or had ended.
            let _ = task.await;
        }
        let mut state = self.shared.state();
        if let Choice::Late(_) = death {
            state.history.dies_late(who, has_sent);
            self.late += 1;
        } else {
            state.history.dies(who, has_sent);
        }
        state.ended.push(who);
        let labels: Vec<_> = steps.iter().map(StepRecord::label).collect();
        Ok(if labels.is_empty() { "its reply".to_owned() } else { labels.join(", ") })
    }

    async fn end_connections(
        &mut self,
        who: Who,
        death: Choice,
        steps: &[StepRecord],
    ) -> Result<(), String> {
        let name = format!("{who:?}");
        let first = steps.first().ok_or("no command of the dying actor waits");
        match (death, self.store.connections()) {
            (Choice::Late((_, at)), Some(connections)) => {
                let step =
                    steps.get(at).ok_or("no command of the dying actor waits")?;
                connections.delay(step).await;
            }
            (Choice::Freeze(_), Some(connections)) => {
                self.frozen.push(connections.held());
                connections.freeze(&name).await;
            }
            (Choice::Die(_), Some(connections)) => connections.close(&name).await,
            (_, _) => self.store.kill(first?).await,
        }
        Ok(())
    }

    /// Ends the scene: lets all leases and delays end, recovers and drains. Returns all
    /// calls of the run.
    pub(super) async fn end(mut self) -> Result<History, String> {
        let rounds = ROUNDS + usize::from(!self.batches.is_empty());
        self.end_actors().await;
        self.store.heal().await?;
        self.look().await;
        self.call("- resume").await;
        for number in self.batches.clone() {
            self.call(&format!("- seal {number}")).await;
        }
        for _ in 0..rounds {
            self.call("- advance 4").await;
            self.recover().await;
            self.drain().await;
        }
        self.look().await;
        self.store.check()?;
        Ok(std::mem::take(&mut self.shared.state().history))
    }

    /// Ends the actors, whose programs have ended. On a server the notifiers of their
    /// claims would otherwise react to the calls that follow, at any moment.
    async fn end_actors(&mut self) {
        let Some(connections) = self.store.connections() else { return };
        for actor in self.actors.values_mut() {
            connections.close(&actor.name).await;
            if let Some(task) = actor.task.take() {
                task.abort();
            }
        }
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

    /// Claims and settles until no job is left. If a claim of this backend may leave
    /// ready jobs behind, it claims again after a claim without a job.
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
        let look = Look::at(&*self.witness.queue, &self.batches).await;
        self.shared.state().history.after.push(Recorded::Look(look));
    }

    async fn call(&mut self, line: &str) -> Vec<Reply> {
        let operation = Operation::from_str(line).expect("a line of the language");
        let replies = match operation.time() {
            Some(time) => {
                self.store.clock().advance(time);
                Vec::new()
            }
            None => {
                let mut pushes = Pushes::default();
                self.witness.act(&operation, 0, &mut pushes).await
            }
        };
        let call = RecordedCall::alone(operation, 0, replies.clone());
        self.shared.state().history.after.push(Recorded::Call(call));
        replies
    }
}

/// A number that is larger than the number of jobs in any scene.
const MOST_JOBS: u64 = 16;

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
