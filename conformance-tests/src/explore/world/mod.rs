//! One run of a scene on a real server. It stops whenever each actor has a command that
//! waits for a decision, or has ended.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::{Queue, QueueName, capabilities::Capabilities};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{
    caller::{Caller, Pushes},
    history::{History, Recorded},
    scene::Scene,
};
use crate::{
    Subject,
    harness::environment::seeded,
    proxy::{Behind, Endpoint, Fault, FaultProxy, StepRecord, VirtualClock},
    server::Server,
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

/// A decision about what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Choice {
    /// The command of the actor runs.
    Pass(Who),
    /// The next step of time.
    Time,
    /// The actor dies before its command runs.
    DieBefore(Who),
    /// The actor dies after its command ran, and before the reply arrives.
    DieAfter(Who),
}

/// What happened by a decision.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) choice: Choice,
    pub(super) command: String,
    /// The calls that ended by it, and their replies.
    pub(super) returned: Vec<(Who, String)>,
    /// The stats after it, in a run that is drawn.
    pub(super) jobs: String,
}

impl Choice {
    pub(super) fn is_death(self) -> bool {
        matches!(self, Self::DieBefore(_) | Self::DieAfter(_))
    }

    /// The actor; nobody when time passes.
    pub(super) fn who(self) -> Who {
        match self {
            Self::Pass(who) | Self::DieBefore(who) | Self::DieAfter(who) => who,
            Self::Time => Who::Nobody,
        }
    }
}

/// One run.
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
    /// The number of its steps when its current call began.
    is_dead: bool,
}

/// What the actors of a run share.
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
    /// Opens the queue for each actor, makes the calls of the setup, and begins the
    /// programs.
    pub(super) async fn start(
        server: &Server,
        subject: &Arc<dyn Subject>,
        scene: &Scene,
        deaths: usize,
    ) -> Result<Self, String> {
        let clock = VirtualClock::new();
        clock.hold_still_in_scripts();
        let proxy =
            FaultProxy::start(server.address(), clock.clone()).map_err(at_proxy)?;
        subject.prepare(&proxy).await.map_err(at_proxy)?;
        proxy.tell(&["FLUSHALL"]).await.map_err(at_proxy)?;
        let queue = QueueName::new("scene").map_err(|error| error.to_string())?;
        let mut callers = BTreeMap::new();
        let mut actors = BTreeMap::new();
        let setup_actors = scene.setup.iter().map(|one| one.who);
        let wanted = scene.programs.keys().copied().chain(setup_actors);
        for who in wanted.chain([Who::Nobody]) {
            if callers.contains_key(&who) {
                continue;
            }
            let name = format!("{who:?}");
            let endpoint = proxy.actor(&name).map_err(at_proxy)?;
            let environment = seeded(&clock, who as u64);
            let opened = subject.connect(endpoint.url(), &queue, &environment).await;
            let opened: Arc<dyn Queue> =
                opened.map_err(|error| error.full_message())?;
            callers.insert(who, Caller::new(who, opened));
            actors.insert(who, Actor { endpoint, name, task: None, is_dead: false });
        }
        for caller in callers.values() {
            // The first write of a connection may send more commands than later ones.
            let first = caller.queue.resume().await;
            first.map_err(|error| error.full_message())?;
        }
        let can = callers[&Who::Nobody].queue.capabilities().clone();
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: watch::Sender::new(0),
        });
        let (setup, programs) = scene.payloads_before();
        for (operation, payloads) in scene.setup.iter().zip(setup) {
            let replies = match &operation.act {
                Act::Advance(step) => {
                    clock.advance(draft::step(*step));
                    Vec::new()
                }
                _ => {
                    let caller = callers.get_mut(&operation.who).expect("it is opened");
                    let mut pushes = shared.state().pushes.clone();
                    let replies = caller.act(operation, payloads, &mut pushes).await;
                    remember(&mut pushes, &replies);
                    shared.state().pushes = pushes;
                    replies
                }
            };
            let operation = operation.clone();
            let call = RecordedCall { operation, payloads, replies, is_lost: false };
            shared.state().history.setup.push(call);
        }
        proxy.park();
        actors.values().for_each(|actor| actor.endpoint.forget_replies());
        let mut time = scene.programs.get(&Who::Nobody).cloned().unwrap_or_default();
        time.reverse();
        for (who, program) in &scene.programs {
            if *who == Who::Nobody {
                continue;
            }
            let caller = callers.remove(who).expect("it is opened");
            let actor = actors.get_mut(who).expect("it is opened");
            let calls: Vec<_> =
                program.iter().cloned().zip(programs[who].clone()).collect();
            let playing =
                play(Arc::clone(&shared), actor.endpoint.clone(), *who, caller, calls);
            actor.task = Some(tokio::spawn(playing));
        }
        actors.retain(|_, actor| actor.task.is_some());
        let witness = callers.remove(&Who::Nobody).expect("it is opened");
        let events = Vec::new();
        let mut world = Self {
            proxy,
            clock,
            actors,
            witness,
            time,
            shared,
            can,
            deaths_left: deaths,
            events,
        };
        world.settle_down().await?;
        Ok(world)
    }

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
            choices.extend(with_command.iter().map(|who| Choice::DieBefore(*who)));
            choices.extend(with_command.iter().map(|who| Choice::DieAfter(*who)));
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
            Choice::DieBefore(who) => self.kill(who, Fault::Before).await?,
            Choice::DieAfter(who) => {
                self.kill(who, Fault::After(Behind::Dropped)).await?
            }
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

    async fn kill(&mut self, who: Who, fault: Fault) -> Result<String, String> {
        let step = self.next_step(who).await?;
        let ran = !matches!(fault, Fault::Before);
        self.shared.state().dying.push(who);
        self.proxy.inject(&step.actor, step.step, fault);
        let actor = self.actors.get_mut(&who).expect("it has a command");
        actor.endpoint.gone().await;
        actor.is_dead = true;
        if let Some(task) = actor.task.take() {
            task.abort();
            // The task was aborted, or had ended.
            let _ = task.await;
        }
        self.deaths_left -= 1;
        let mut state = self.shared.state();
        let first = state.steps.get(&who).copied().unwrap_or_default() + 1;
        state.history.dies(who, ran || step.step > first);
        state.ended.push(who);
        drop(state);
        Ok(step.label())
    }

    /// What decides everything that can follow: the server's data, the time, the replies
    /// that each actor got, the commands that wait, and which call ended before which
    /// began.
    pub(super) async fn digest(&mut self) -> Result<u64, String> {
        let parked = self.settle_down().await?;
        let mut hasher = DefaultHasher::new();
        for command in [&["DEBUG", "DIGEST"][..], &["EVAL", STREAMS, "0"]] {
            self.proxy.tell(command).await.map_err(at_proxy)?.hash(&mut hasher);
        }
        format!("{:?}", self.clock).hash(&mut hasher);
        (self.time.len(), self.deaths_left).hash(&mut hasher);
        for step in &parked {
            (&step.actor, step.label()).hash(&mut hasher);
        }
        for actor in self.actors.values() {
            actor.endpoint.replies().hash(&mut hasher);
        }
        let state = self.shared.state();
        let mut calls: Vec<_> = state.history.overlapping.iter().enumerate().collect();
        calls.sort_by_key(|(_, one)| one.call.operation.who);
        let mut names = BTreeMap::new();
        for (number, (at, one)) in calls.into_iter().enumerate() {
            names.insert(at, number);
            format!("{:?}", one.call).hash(&mut hasher);
            one.ended.is_some().hash(&mut hasher);
        }
        let mut pairs: Vec<_> = state
            .history
            .precedence()
            .into_iter()
            .map(|(one, other)| (names[&one], names[&other]))
            .collect();
        pairs.sort_unstable();
        pairs.hash(&mut hasher);
        let mut dead: Vec<_> = state.ended.clone();
        dead.sort_unstable();
        format!("{dead:?}").hash(&mut hasher);
        Ok(hasher.finish())
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

/// The groups of all streams, which the server's own digest leaves out: their positions
/// and pending entries, without the times of the server's own clock.
const STREAMS: &str = "-- the suite's own\n\
    local parts = {} \
    local function add(...) for _, part in ipairs({...}) do \
      parts[#parts + 1] = tostring(part) end end \
    for _, key in ipairs(redis.call('KEYS', '*')) do \
      if redis.call('TYPE', key).ok == 'stream' then \
        for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do \
          add(key, group[2], group[8]) \
          local pending = redis.call('XPENDING', key, group[2], '-', '+', 1000) \
          for _, one in ipairs(pending) do add(one[1], one[2], one[4]) end \
        end end end \
    return parts";

/// Makes the calls of a program, one after the other.
async fn play(
    shared: Arc<Shared>,
    endpoint: Endpoint,
    who: Who,
    mut caller: Caller,
    calls: Vec<(Operation, usize)>,
) {
    for (operation, payloads) in calls {
        let (number, mut pushes) = {
            let mut state = shared.state();
            state.steps.insert(who, endpoint.steps());
            let number = state.history.begins(operation.clone(), payloads);
            (number, state.pushes.clone())
        };
        let replies = caller.act(&operation, payloads, &mut pushes).await;
        if !shared.ends(who, number, replies) {
            return std::future::pending().await;
        }
    }
    shared.state().ended.push(who);
    shared.changed.send_modify(|changes| *changes += 1);
    // A client that is dropped may send its last commands at any moment.
    let _kept = caller;
    std::future::pending::<()>().await;
}

/// Keeps the ids of the jobs that a push of the setup stored.
fn remember(pushes: &mut Pushes, replies: &[Reply]) {
    for reply in replies {
        if let Reply::Pushed(Ok(pushed)) = reply {
            let id = |one: &relq_core::outcome::Pushed| match one {
                relq_core::outcome::Pushed::Stored(id) => Some(id.clone()),
                relq_core::outcome::Pushed::Duplicate { .. } => None,
            };
            pushes.ids.extend(pushed.iter().map(id));
        }
    }
}

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

const LETTERS: [(Who, char); 5] = [
    (Who::Producer, 'p'),
    (Who::WorkerA, 'a'),
    (Who::WorkerB, 'b'),
    (Who::Operator, 'o'),
    (Who::Reaper, 'r'),
];

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |who: &Who| {
            LETTERS.iter().find(|(known, _)| known == who).map_or('-', |it| it.1)
        };
        match self {
            Self::Time => f.write_str("-"),
            Self::Pass(who) => write!(f, "{}", letter(who)),
            Self::DieBefore(who) => write!(f, "{}!before", letter(who)),
            Self::DieAfter(who) => write!(f, "{}!after", letter(who)),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-" {
            return Ok(Self::Time);
        }
        let (letter, fault) = match text.split_once('!') {
            Some((letter, fault)) => (letter, Some(fault)),
            None => (text, None),
        };
        let who = LETTERS.iter().find(|(_, known)| letter == known.to_string());
        let Some((who, _)) = who else {
            return Err(format!("`{text}` is no decision"));
        };
        match fault {
            None => Ok(Self::Pass(*who)),
            Some("before") => Ok(Self::DieBefore(*who)),
            Some("after") => Ok(Self::DieAfter(*who)),
            Some(_) => Err(format!("`{text}` is no decision")),
        }
    }
}
