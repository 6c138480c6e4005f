//! The start of a run: each actor opens the queue, the calls of the setup are made, and
//! the programs begin.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use relq_core::{QueueName, environment::Clock as _};

use super::{Actor, Shared, World};
use crate::{
    Subject,
    explore::{
        faults::Faults,
        scene::Scene,
        store::{Place, SteppedStore},
    },
    harness::environment::seeded,
    spec::{
        caller::Caller,
        operation::{Operation, Who},
        recorded::{RecordedCall, Reply},
    },
};

/// The opened queue of each actor of a scene. No program has begun.
struct Opened {
    store: Arc<dyn SteppedStore>,
    callers: BTreeMap<Who, Caller>,
    actors: BTreeMap<Who, Actor>,
    shared: Arc<Shared>,
}

impl World {
    /// Starts a scene on an empty store.
    ///
    /// # Errors
    /// When there is no store, when an actor cannot open the queue, and when an
    /// actor does not reach its first command in time.
    pub(in super::super) async fn start(
        place: &Place,
        subject: &Arc<dyn Subject>,
        scene: &Scene,
        faults: Faults,
    ) -> Result<Self, String> {
        let store = place.empty_store(subject).await?;
        let mut opened = Opened::open(store, scene).await?;
        opened.write_once().await?;
        opened.wait_once(scene).await?;
        opened.set_up(scene).await;
        let mut world = opened.begin(scene, faults);
        world.settle_down().await?;
        Ok(world)
    }
}

impl Opened {
    async fn open(store: Arc<dyn SteppedStore>, scene: &Scene) -> Result<Self, String> {
        let queue = QueueName::new("scene").map_err(|error| error.to_string())?;
        let of_setup = scene.setup.iter().map(|one| one.who);
        let of_programs = scene.programs.keys().copied();
        let all: BTreeSet<Who> =
            of_programs.chain(of_setup).chain([Who::Nobody]).collect();
        let (mut callers, mut actors) = (BTreeMap::new(), BTreeMap::new());
        for who in all {
            let name = format!("{who:?}");
            let environment = seeded(store.clock(), who as u64);
            let opened = store.connect(&name, &queue, &environment).await?;
            callers.insert(who, Caller::new(who, opened));
            actors.insert(who, Actor { name, task: None });
        }
        Ok(Self { store, callers, actors, shared: Arc::default() })
    }

    /// Writes to the queue once on each connection, because the first write of a
    /// connection may send more commands than later ones.
    async fn write_once(&self) -> Result<(), String> {
        for caller in self.callers.values() {
            let written = caller.queue.resume().await;
            written.map_err(|error| error.full_message())?;
        }
        Ok(())
    }

    /// Lets each actor whose claims wait have waited before: its connections for that
    /// are open, and the server holds no command on them.
    async fn wait_once(&self, scene: &Scene) -> Result<(), String> {
        const MOMENT: Duration = Duration::from_millis(1);
        let clock = self.store.clock();
        let Some(connections) = self.store.connections() else { return Ok(()) };
        for who in scene.waiters() {
            let time_passes = async {
                loop {
                    if let Err(wrong) = connections.idle().await {
                        return wrong;
                    }
                    clock.advance(MOMENT);
                }
            };
            tokio::select! {
                biased;
                waited = self.callers[&who].wait_for_nothing(MOMENT) => {
                    waited.map_err(|error| error.full_message())?;
                }
                wrong = time_passes => return Err(wrong),
            }
        }
        connections.idle().await?;
        while !connections.held().is_empty() && clock.advance_to_next().is_some() {
            connections.idle().await?;
        }
        self.shared.state().history.start = clock.elapsed();
        Ok(())
    }

    /// Makes the calls of the setup, one after the other.
    async fn set_up(&mut self, scene: &Scene) {
        let scene_began = self.store.clock().now();
        self.callers.values_mut().for_each(|caller| caller.scene_began = scene_began);
        let (payloads, _) = scene.payloads_before();
        for (operation, payloads) in scene.setup.iter().zip(payloads) {
            let replies = match operation.time() {
                Some(time) => {
                    self.store.clock().advance(time);
                    Vec::new()
                }
                None => self.call(operation, payloads).await,
            };
            let operation = operation.clone();
            let call = RecordedCall::alone(operation, payloads, replies);
            self.shared.state().history.setup.push(call);
        }
    }

    async fn call(&mut self, operation: &Operation, payloads: usize) -> Vec<Reply> {
        let caller = self.callers.get_mut(&operation.who).expect("it is opened");
        let mut pushes = self.shared.state().pushes.clone();
        let replies = caller.act(operation, payloads, &mut pushes).await;
        pushes.remember(&replies);
        self.shared.state().pushes = pushes;
        replies
    }

    /// Begins the actors' programs. From now on each command waits for a decision.
    fn begin(mut self, scene: &Scene, faults: Faults) -> World {
        self.store.park();
        let mut time = scene.programs.get(&Who::Nobody).cloned().unwrap_or_default();
        time.reverse();
        let witness = self.callers.remove(&Who::Nobody).expect("it is opened");
        let (_, payloads) = scene.payloads_before();
        for (who, program) in &scene.programs {
            let Some(caller) = self.callers.remove(who) else { continue };
            let actor = self.actors.get_mut(who).expect("it is opened");
            let calls: Vec<_> =
                program.iter().cloned().zip(payloads[who].clone()).collect();
            let (shared, store) = (Arc::clone(&self.shared), Arc::clone(&self.store));
            let playing = play(shared, store, *who, caller, calls);
            actor.task = Some(tokio::spawn(playing));
        }
        self.actors.retain(|_, actor| actor.task.is_some());
        World {
            store: self.store,
            actors: self.actors,
            can: witness.queue.capabilities().clone(),
            witness,
            time,
            shared: self.shared,
            batches: scene.batches(),
            faults_left: faults,
            frozen: Vec::new(),
            late: 0,
            events: Vec::new(),
        }
    }
}

/// Makes the calls of a program, one after the other.
async fn play(
    shared: Arc<Shared>,
    store: Arc<dyn SteppedStore>,
    who: Who,
    mut caller: Caller,
    calls: Vec<(Operation, usize)>,
) {
    let mut pushes = shared.state().pushes.clone();
    for (operation, payloads) in calls {
        let number = {
            let mut state = shared.state();
            state.sent.remove(&who);
            let now = store.clock().elapsed();
            state.history.begins(who, (operation.clone(), payloads), now)
        };
        let replies = caller.act(&operation, payloads, &mut pushes).await;
        if !shared.ends(who, number, replies) {
            return std::future::pending().await;
        }
    }
    shared.state().ended.push(who);
    shared.changed.send_modify(|changes| *changes += 1);
    // Keep the client, because a client that is dropped may send its last commands at
    // any moment.
    let _kept = caller;
    std::future::pending::<()>().await;
}
