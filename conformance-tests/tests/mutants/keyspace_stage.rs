//! Has a mutant of the keyspace backend judged: by one case, struck in one act, or by a
//! check that only its pattern needs.

use std::{
    future::Future,
    io,
    num::NonZeroU32,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use backend_keyspace::{KeyspaceConfig, KeyspaceQueue};
use conformance_tests::{
    Profile, Room, Subject, async_trait,
    fault::{Fitted, Gate, VirtualClock},
    own::Keyspace,
    server::Server,
    steps, verdict,
};
use queue_core::{
    ClaimRequest, Environment, Error, Extended, OsRandomness, Queue, QueueName,
    ReliableQueue, ReliableQueueExt, Settled, WorkerId,
};

use crate::mutant::Patch;

const LEASE: Duration = Duration::from_secs(3600);
const PAGE: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// The backend with these patches, as a backend under test.
struct Mutated {
    patches: &'static [Patch],
    fitted: Mutex<Vec<Fitted>>,
    healthy: Keyspace,
}

impl Mutated {
    fn new(patches: &'static [Patch]) -> Self {
        Self { patches, fitted: Mutex::default(), healthy: Keyspace::default() }
    }

    async fn open(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<KeyspaceQueue>, Error> {
        let config = KeyspaceConfig::new(endpoint).expect("the suite gives a URL");
        let config = config.environment(environment.clone());
        let opened = KeyspaceQueue::connect(config, queue.clone()).await?;
        // All scripts went through: a mutant must be one by now.
        let fitted = self.fitted.lock().unwrap().iter().filter(|one| one.get()).count();
        assert_eq!(fitted, self.patches.len(), "patches of a keyspace mutant");
        Ok(Arc::new(opened))
    }
}

#[async_trait]
impl Subject for Mutated {
    async fn prepare(&self, gate: &Gate) -> io::Result<()> {
        let patches = self.patches.iter();
        let fitted = patches.map(|it| gate.patch_script(it.script, it.from, it.to));
        *self.fitted.lock().unwrap() = fitted.collect();
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        Ok(self.open(endpoint, queue, environment).await?)
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        self.healthy.plain_push(queue, payload)
    }

    fn plain_pushes_wake(&self) -> bool {
        self.healthy.plain_pushes_wake()
    }

    fn room(&self) -> Room {
        self.healthy.room()
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        self.healthy.owns(queue, key)
    }
}

/// What the case says of the backend with these patches.
pub(crate) fn judge(patches: &'static [Patch], case: &str) -> Result<(), String> {
    verdict(Mutated::new(patches), Profile::Redis, case)
}

/// What goes wrong when it is struck at every step of the act.
pub(crate) fn strike(patches: &'static [Patch], act: &str) -> Vec<String> {
    steps::failures(Mutated::new(patches), act)
}

/// A check of the pattern's own, which says what is wrong.
type OwnCheck =
    fn(&Stage) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;

/// What that check says of it.
pub(crate) fn judge_by(
    patches: &'static [Patch],
    check: OwnCheck,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("the system gives a runtime").block_on(async {
        let stage = Stage::new(patches).await;
        check(&stage).await
    })
}

/// A server of its own, and a gate before it.
pub(crate) struct Stage {
    subject: Mutated,
    gate: Gate,
    clock: VirtualClock,
    _server: Server,
}

impl Stage {
    async fn new(patches: &'static [Patch]) -> Self {
        let (server, clock) = (Server::start(), VirtualClock::new());
        let gate =
            Gate::start(server.address(), clock.clone()).expect("the gate starts");
        let subject = Mutated::new(patches);
        subject.prepare(&gate).await.expect("the gate can be prepared");
        Self { subject, gate, clock, _server: server }
    }

    async fn queue(&self, actor: &str) -> Arc<KeyspaceQueue> {
        let endpoint = self.gate.actor(actor).expect("a socket");
        let clock = Arc::new(self.clock.clone());
        let environment = Environment::new(clock, Arc::new(OsRandomness));
        let name = QueueName::new("jobs").expect("the name is valid");
        let opened = self.subject.open(endpoint.url(), &name, &environment).await;
        opened.expect("an actor connects")
    }

    /// What any client might say to the server.
    async fn set(&self, key: &str, value: &str) {
        let set = self.gate.tell(&["SET", key, value]).await;
        set.expect("the server takes it");
    }

    /// Lets parked steps through until that script of the actor's waits.
    async fn pass_until(&self, actor: &str, script: &str) -> u32 {
        loop {
            let step = self.gate.parked(1).await.remove(0);
            if step.actor == actor && step.label().contains(script) {
                return step.step;
            }
            self.gate.pass(&step.actor, step.step);
        }
    }
}

fn ask() -> ClaimRequest {
    ClaimRequest::new(WorkerId::new("w").expect("a valid id"), LEASE).max(PAGE)
}

/// R9: two jobs of one name, of which one comes back, are both delivered.
pub(crate) async fn a_name_is_set_again_while_leased(
    stage: &Stage,
) -> Result<(), String> {
    let queue = stage.queue("worker").await;
    stage.set("item_5", "old").await;
    let held = queue.claim(&ask()).await.expect("answered");
    stage.set("item_5", "new").await;
    stage.clock.advance(LEASE + Duration::from_millis(1));
    queue.recover(PAGE).await.expect("answered");

    let mut found = queue.claim(&ask()).await.expect("answered");

    found.sort_by(|one, other| one.payload.cmp(&other.payload));
    let found: Vec<_> = found.iter().map(|one| &one.payload[..]).collect();
    if held.len() == 1 && found == [b"new", b"old"] {
        return Ok(());
    }
    Err(format!("LOST: two jobs of one name, and found are {found:?}"))
}

/// R6, R12: a lease that ended when the reaper looked, and was extended before it acts,
/// runs on.
pub(crate) async fn a_lease_is_extended_behind_a_reapers_look(
    stage: &Stage,
) -> Result<(), String> {
    let (worker, reaper) = (stage.queue("worker").await, stage.queue("reaper").await);
    worker.push_one("job".into()).await.expect("taken");
    let held = worker.claim(&ask()).await.expect("answered").remove(0);
    stage.clock.advance(LEASE + Duration::from_millis(1));
    stage.gate.park();
    let reaping = tokio::spawn(async move { reaper.recover(PAGE).await });
    let acts = stage.pass_until("reaper", "recover").await;

    let receipts = [held.receipt.clone()];
    let ask = ask();
    let extending = worker.extend(&ask.worker, &receipts, LEASE);
    let passing = async {
        let parked = stage.gate.parked(2).await;
        let worker = parked.iter().find(|step| step.actor == "worker");
        stage.gate.pass("worker", worker.expect("the worker's step").step)
    };
    let (extended, _) = tokio::join!(extending, passing);
    stage.gate.pass("reaper", acts);
    reaping.await.expect("the reaper ends").expect("answered");
    stage.gate.heal().await.expect("the gate heals");

    if !matches!(extended.expect("answered")[..], [Extended::Until(_)]) {
        return Err("the lease was not extended, so nothing was judged".to_owned());
    }
    match worker.ack(&held.receipt).await.expect("answered") {
        Settled::Applied => Ok(()),
        Settled::LeaseLost => Err("NO-STEAL-LIVE: it was taken back".to_owned()),
    }
}
