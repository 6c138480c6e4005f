//! Records the writes of a server while it makes calls, and the state of the store
//! after each call.

use std::sync::Arc;

use relq_core::{Delivery, Queue, Settlement};

use super::{
    append_only_file::Recorded,
    batches::elsewhere,
    fixture::{FaultFixture, Places, ask, places},
    monitor::{Monitor, Scripts, State},
};
use crate::server::Server;

/// The end of a call in the recorded writes, as an offset, and the state of the store
/// after the call.
pub(super) struct Mark {
    pub(super) call: &'static str,
    /// What the call belongs to, as [`Tape::topic`] says.
    pub(super) topic: &'static str,
    pub(super) end: usize,
    pub(super) places: Places,
    pub(super) digest: Vec<u8>,
    pub(super) state: State,
    /// The scripts that were loaded and called since the previous mark.
    pub(super) scripts: Scripts,
}

/// How many claims `Tape::claim` makes at most. One claim of the circular backend may
/// return only some of the ready jobs.
const TURNS: usize = 20;

/// The calls made so far, and the state after each of them.
pub(super) struct Tape<'a> {
    pub(super) fixture: &'a FaultFixture,
    pub(super) recorded: Recorded,
    pub(super) queue: Arc<dyn Queue>,
    pub(super) marks: Vec<Mark>,
    /// What the calls of the next marks belong to. A script is tried again in each topic,
    /// because the state of the store differs.
    pub(super) topic: &'static str,
    monitor: Monitor,
}

impl<'a> Tape<'a> {
    pub(super) async fn start(fixture: &'a FaultFixture) -> Self {
        let recorded = Recorded::start();
        let digest = recorded.server.command(&[b"DEBUG", b"DIGEST"]);
        let (call, topic, places) = ("the start", "plain", Places::default());
        let (state, scripts) = (State::of(&recorded.server), Scripts::default());
        let nothing = Mark { call, topic, end: 0, places, digest, state, scripts };
        let monitor = Monitor::start(&recorded.server);
        let queue = fixture.connect(&recorded.server).await;
        let marks = vec![nothing];
        let mut tape = Self { fixture, recorded, queue, marks, topic, monitor };
        tape.mark("connect").await;
        tape
    }

    pub(super) async fn mark(&mut self, call: &'static str) {
        let places = look(self.fixture, &self.recorded.server, &*self.queue).await;
        let digest = self.recorded.server.command(&[b"DEBUG", b"DIGEST"]);
        let end = self.recorded.writes().len();
        let state = State::of(&self.recorded.server);
        let scripts = self.monitor.scripts(&self.recorded.server);
        let topic = self.topic;
        self.marks.push(Mark { call, topic, end, places, digest, state, scripts });
    }

    /// Claims until `count` jobs are held. One claim may not be enough, because a claim
    /// of the circular backend may return only some of the ready jobs.
    pub(super) async fn claim(&mut self, count: usize) -> Vec<Delivery> {
        let mut held = Vec::new();
        for _ in 0..TURNS {
            held.extend(take_some(&*self.queue, count - held.len()).await);
            self.mark("claim").await;
            if held.len() == count {
                return held;
            }
        }
        panic!("{} of {count} jobs were delivered", held.len());
    }

    pub(super) async fn settle(&mut self, done: &[Settlement]) {
        self.queue.settle(done).await.expect("settled");
        self.mark("settle").await;
    }
}

async fn take_some(queue: &dyn Queue, count: usize) -> Vec<Delivery> {
    let max = u32::try_from(count).expect("few jobs");
    queue.claim(&ask(max)).await.expect("claimed")
}

/// Reads the state of all jobs. If the backend supports batches, that includes the
/// second queue, which receives completion jobs.
pub(super) async fn look(
    fixture: &FaultFixture,
    server: &Server,
    queue: &dyn Queue,
) -> Places {
    let mut here = places(queue).await;
    if queue.batch_queue().is_some() {
        let there = places(&*fixture.connect_to(server, &elsewhere()).await).await;
        let there = there.jobs.into_iter();
        here.jobs.extend(there.map(|(payload, is)| (told_elsewhere(&payload), is)));
    }
    here
}

/// Returns the name under which the tests record a job of the second queue. It differs
/// from the name of a job of the first queue with the same payload.
pub(super) fn told_elsewhere(payload: &str) -> String {
    format!("elsewhere: {payload}")
}
