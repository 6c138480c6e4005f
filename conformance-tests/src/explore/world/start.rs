//! The start of a run: each actor opens the queue, the calls of the setup are made, and
//! the programs begin.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use relq_core::{QueueName, outcome::Pushed};

use super::{Actor, Shared, World, at_proxy};
use crate::{
    Subject,
    explore::{
        caller::{Caller, Pushes},
        scene::Scene,
    },
    harness::environment::seeded,
    proxy::{Endpoint, FaultProxy, VirtualClock},
    server::Server,
    spec::{
        draft,
        operation::{Act, Operation, Who},
        tape::{RecordedCall, Reply},
    },
};

/// The actors of a scene, whose programs have not begun.
struct Opened {
    proxy: FaultProxy,
    clock: VirtualClock,
    callers: BTreeMap<Who, Caller>,
    actors: BTreeMap<Who, Actor>,
    shared: Arc<Shared>,
}

impl World {
    /// Starts a scene on the server, which is emptied for it.
    ///
    /// # Errors
    /// When the proxy does not run, when an actor cannot open the queue, and when an
    /// actor does not reach its first command in time.
    pub(in super::super) async fn start(
        server: &Server,
        subject: &Arc<dyn Subject>,
        scene: &Scene,
        deaths: usize,
    ) -> Result<Self, String> {
        let mut opened = Opened::open(server, subject, scene).await?;
        opened.write_once().await?;
        opened.set_up(scene).await;
        let mut world = opened.begin(scene, deaths);
        world.settle_down().await?;
        Ok(world)
    }
}

impl Opened {
    async fn open(
        server: &Server,
        subject: &Arc<dyn Subject>,
        scene: &Scene,
    ) -> Result<Self, String> {
        let clock = VirtualClock::new();
        clock.hold_still_in_scripts();
        let proxy =
            FaultProxy::start(server.address(), clock.clone()).map_err(at_proxy)?;
        proxy.name_entries();
        subject.prepare(&proxy).await.map_err(at_proxy)?;
        proxy.tell(&["FLUSHALL"]).await.map_err(at_proxy)?;
        let queue = QueueName::new("scene").map_err(|error| error.to_string())?;
        let of_setup = scene.setup.iter().map(|one| one.who);
        let of_programs = scene.programs.keys().copied();
        let all: BTreeSet<Who> =
            of_programs.chain(of_setup).chain([Who::Nobody]).collect();
        let (mut callers, mut actors) = (BTreeMap::new(), BTreeMap::new());
        for who in all {
            let name = format!("{who:?}");
            let endpoint = proxy.actor(&name).map_err(at_proxy)?;
            let environment = seeded(&clock, who as u64);
            let opened = subject.connect(endpoint.url(), &queue, &environment).await;
            let opened = opened.map_err(|error| error.full_message())?;
            callers.insert(who, Caller::new(who, opened));
            actors.insert(who, Actor { endpoint, name, task: None });
        }
        Ok(Self { proxy, clock, callers, actors, shared: Arc::default() })
    }

    /// Writes to the queue by each connection: its first write may send more commands
    /// than later ones.
    async fn write_once(&self) -> Result<(), String> {
        for caller in self.callers.values() {
            let written = caller.queue.resume().await;
            written.map_err(|error| error.full_message())?;
        }
        Ok(())
    }

    /// Makes the calls of the setup, one after the other.
    async fn set_up(&mut self, scene: &Scene) {
        let (payloads, _) = scene.payloads_before();
        for (operation, payloads) in scene.setup.iter().zip(payloads) {
            let replies = if let Act::Advance(step) = operation.act {
                self.clock.advance(draft::step(step));
                Vec::new()
            } else {
                self.call(operation, payloads).await
            };
            let operation = operation.clone();
            let call = RecordedCall { operation, payloads, replies, is_lost: false };
            self.shared.state().history.setup.push(call);
        }
    }

    async fn call(&mut self, operation: &Operation, payloads: usize) -> Vec<Reply> {
        let caller = self.callers.get_mut(&operation.who).expect("it is opened");
        let mut pushes = self.shared.state().pushes.clone();
        let replies = caller.act(operation, payloads, &mut pushes).await;
        remember(&mut pushes, &replies);
        self.shared.state().pushes = pushes;
        replies
    }

    /// Begins the programs. From now on each command waits for a decision.
    fn begin(mut self, scene: &Scene, deaths: usize) -> World {
        self.proxy.park();
        self.actors.values().for_each(|actor| actor.endpoint.forget_replies());
        let mut time = scene.programs.get(&Who::Nobody).cloned().unwrap_or_default();
        time.reverse();
        let witness = self.callers.remove(&Who::Nobody).expect("it is opened");
        let (_, payloads) = scene.payloads_before();
        for (who, program) in &scene.programs {
            let Some(caller) = self.callers.remove(who) else { continue };
            let actor = self.actors.get_mut(who).expect("it is opened");
            let calls: Vec<_> =
                program.iter().cloned().zip(payloads[who].clone()).collect();
            let (shared, endpoint) = (Arc::clone(&self.shared), actor.endpoint.clone());
            let playing = play(shared, endpoint, *who, caller, calls);
            actor.task = Some(tokio::spawn(playing));
        }
        self.actors.retain(|_, actor| actor.task.is_some());
        World {
            proxy: self.proxy,
            clock: self.clock,
            actors: self.actors,
            can: witness.queue.capabilities().clone(),
            witness,
            time,
            shared: self.shared,
            deaths_left: deaths,
            events: Vec::new(),
        }
    }
}

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
            let id = |one: &Pushed| match one {
                Pushed::Stored(id) => Some(id.clone()),
                Pushed::Duplicate { .. } => None,
            };
            pushes.ids.extend(pushed.iter().map(id));
        }
    }
}
