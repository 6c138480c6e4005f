//! Faults of the servers, in an order that a seed decides.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use serde::Serialize;
use tokio::task::JoinHandle;

use super::{Deployment, Fault};
use crate::SuiteResult;

/// The longest time between the promotion of a replica and the return of the old
/// master.
const LONGEST_ABSENCE: Duration = Duration::from_secs(1);

/// The longest time in which nothing happens after all replicas are in step.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// How often each fault happened.
#[derive(Serialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct FaultCounts {
    /// How often the slot of a part moved to another node and back.
    pub(in super::super) moves: u64,
    /// How many masters were killed and replaced by a replica.
    pub(in super::super) kills: u64,
    /// How many masters were frozen, replaced, and came back.
    pub(in super::super) freezes: u64,
    /// How many masters were cut off, replaced, and came back.
    pub(in super::super) cut_offs: u64,
    /// How many servers were killed and started again at once.
    pub(in super::super) restarts: u64,
    /// How many of these were the master of a part of the queue.
    pub(in super::super) master_restarts: u64,
}

impl FaultCounts {
    /// How many times a part of the queue was without a master.
    pub(in super::super) fn outages(&self) -> u64 {
        self.kills + self.freezes + self.cut_offs + self.master_restarts
    }

    pub(in super::super) fn all(&self) -> u64 {
        self.moves + self.kills + self.freezes + self.cut_offs + self.restarts
    }
}

/// Which faults happen, and in which order.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct FaultSchedule {
    pub(in super::super) seed: u64,
    /// After this time no other fault begins.
    pub(in super::super) length: Duration,
}

/// Faults that happen while the soak runs.
pub(in super::super) struct Faults {
    over: Over,
    running: JoinHandle<SuiteResult<(Box<dyn Deployment>, FaultCounts)>>,
}

impl Faults {
    /// Begins with the first fault. Each round of the schedule has every fault once.
    pub(in super::super) fn start(
        deployment: Box<dyn Deployment>,
        schedule: FaultSchedule,
    ) -> Self {
        let over = Over::default();
        let is_over = Arc::clone(&over.0);
        let running = tokio::task::spawn_blocking(move || {
            let mut happening = Happening {
                deployment,
                random: StdRng::seed_from_u64(schedule.seed),
                counts: FaultCounts::default(),
                start: Instant::now(),
            };
            happening.rounds(schedule.length, &is_over)?;
            Ok((happening.deployment, happening.counts))
        });
        Self { over, running }
    }

    /// Whether no more faults happen.
    pub(in super::super) fn are_over(&self) -> bool {
        self.running.is_finished()
    }

    /// Waits until the present fault is over and all replicas are in step. Returns the
    /// servers.
    pub(in super::super) async fn end(
        self,
    ) -> SuiteResult<(Box<dyn Deployment>, FaultCounts)> {
        drop(self.over);
        self.running.await?
    }
}

/// Tells the thread of the faults to begin no other fault, when it is dropped.
#[derive(Default)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Happening {
    deployment: Box<dyn Deployment>,
    random: StdRng,
    counts: FaultCounts,
    start: Instant,
}

impl Happening {
    fn rounds(&mut self, length: Duration, is_over: &AtomicBool) -> SuiteResult<()> {
        loop {
            let mut round = self.deployment.faults().to_vec();
            round.shuffle(&mut self.random);
            for fault in round {
                if self.start.elapsed() >= length || is_over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.tell(&format!("{fault:?}"));
                self.happen(fault)?;
                self.deployment.wait_until_in_step()?;
                self.tell("all replicas are in step");
                self.pause(LONGEST_REST);
            }
        }
    }

    fn happen(&mut self, fault: Fault) -> SuiteResult<()> {
        let part = self.random.random_range(0..self.deployment.parts());
        match fault {
            Fault::Move => self.move_to_and_fro(part),
            Fault::Kill => self.kill(part),
            Fault::Freeze => self.freeze(part),
            Fault::CutOff => self.cut_off(part),
            Fault::RestartAll => self.restart_all(),
        }
    }

    fn move_to_and_fro(&mut self, part: usize) -> SuiteResult<()> {
        let random = &mut self.random;
        self.deployment.move_to_and_fro(part, &mut |of| random.random_range(0..of))?;
        self.counts.moves += 1;
        Ok(())
    }

    fn kill(&mut self, part: usize) -> SuiteResult<()> {
        let master = self.deployment.master(part)?;
        self.deployment.members()[master].node.kill();
        self.counts.kills += 1;
        self.deployment.wait_until_promoted(part, master)?;
        self.pause(LONGEST_ABSENCE);
        self.deployment.members()[master].node.restart();
        Ok(())
    }

    fn freeze(&mut self, part: usize) -> SuiteResult<()> {
        let master = self.deployment.master(part)?;
        self.deployment.members()[master].node.freeze();
        self.counts.freezes += 1;
        let promoted = self.deployment.wait_until_promoted(part, master);
        self.pause(LONGEST_ABSENCE);
        self.deployment.members()[master].node.thaw();
        promoted
    }

    fn cut_off(&mut self, part: usize) -> SuiteResult<()> {
        let master = self.deployment.master(part)?;
        let source = self.deployment.members()[master].source;
        self.deployment.links().cut_off(source);
        self.counts.cut_offs += 1;
        let promoted = self.deployment.wait_until_promoted(part, master);
        self.pause(LONGEST_ABSENCE);
        self.deployment.links().heal();
        promoted
    }

    fn restart_all(&mut self) -> SuiteResult<()> {
        let mut order: Vec<_> = (0..self.deployment.members().len()).collect();
        order.shuffle(&mut self.random);
        for at in order {
            let is_master = self.is_master(at)?;
            let member = &mut self.deployment.members()[at];
            member.node.kill();
            member.node.restart();
            self.counts.restarts += 1;
            self.counts.master_restarts += u64::from(is_master);
            self.deployment.wait_until_in_step()?;
        }
        Ok(())
    }

    /// Whether the server is the master of a part.
    fn is_master(&self, at: usize) -> SuiteResult<bool> {
        for part in 0..self.deployment.parts() {
            if self.deployment.master(part)? == at {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits for a random time.
    fn pause(&mut self, longest: Duration) {
        thread::sleep(longest.mul_f64(self.random.random()));
    }

    fn tell(&self, what: &str) {
        eprintln!("conformance: after {:.1?}: {what}", self.start.elapsed());
    }
}
