//! The reference: every job, and all that may be true of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use queue_core::{JobId, NewJob, Receipt, UniqueKey};

use super::world::{End, Lease, Ms, Place, World};
use crate::{
    class::Class,
    turn::{LAST, Moment, Turn},
};

/// How long ids, tokens and cancelled leases are remembered (R4).
pub(crate) const WINDOW: Ms = 5 * 60 * 1000;

/// What is wrong, with the name of the check.
pub(crate) type Verdict = Result<(), String>;

/// What is known of whether a call happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    Done,
    Maybe,
}

/// A job that was pushed, or was meant to be.
pub(crate) struct Job {
    pub(crate) spec: NewJob,
    /// None as long as no answer has told it.
    pub(crate) id: Option<JobId>,
    /// Jobs of one call are stored together or not at all (R5).
    pub(crate) call: u32,
    pub(crate) worlds: Vec<World>,
    /// How often it was delivered, and how often it came back for a reason (R6).
    pub(crate) runs: u32,
    pub(crate) returns: u32,
    /// How many claims in a row found less than they asked for, while it was ready.
    pub(crate) passed_over: u64,
}

/// A lease that somebody was told of.
pub(crate) struct Told {
    pub(crate) receipt: Receipt,
    pub(crate) job: usize,
    pub(crate) lease: Lease,
}

/// A push that carried a token.
pub(crate) struct Call {
    pub(crate) jobs: Vec<NewJob>,
    pub(crate) first_at: Ms,
    pub(crate) call: u32,
    /// The first answer that was heard.
    pub(crate) answers: Option<Vec<queue_core::Pushed>>,
}

/// All that is known.
pub(crate) struct Book {
    pub(crate) now: Ms,
    /// Counts what happens, to tell earlier from later.
    pub(crate) step: u32,
    pub(crate) jobs: Vec<Job>,
    pub(crate) told: Vec<Told>,
    pub(crate) calls: BTreeMap<u8, Call>,
    /// Whether claims are paused: what may be.
    pub(crate) paused: Vec<bool>,
    pub(crate) class: Class,
}

impl Book {
    pub(crate) fn new(class: Class) -> Self {
        Self {
            now: 0,
            step: 0,
            jobs: Vec::new(),
            told: Vec::new(),
            calls: BTreeMap::new(),
            paused: vec![false],
            class,
        }
    }

    /// Says what becomes of each job in each of its worlds. A world that becomes
    /// nothing is impossible; a job without a world breaks the rule that is named.
    pub(crate) fn each(
        &mut self,
        known: Knowledge,
        rule: &str,
        becomes: impl Fn(&Job, &World) -> Vec<World>,
    ) -> Verdict {
        for job in &mut self.jobs {
            let mut next = Vec::new();
            let mut returns = false;
            for world in &job.worlds {
                let new = becomes(job, world);
                returns |= world.lease().is_some() && new.iter().any(is_back);
                let kept = (known == Knowledge::Maybe).then_some(*world);
                new.into_iter().chain(kept).for_each(|world| add(&mut next, world));
            }
            if next.is_empty() {
                return Err(format!("{rule}: {}", job.tell()));
            }
            job.worlds = next;
            job.returns += u32::from(returns);
        }
        Ok(())
    }

    /// Rules out worlds of one job.
    pub(crate) fn keep(
        &mut self,
        job: usize,
        rule: &str,
        is_possible: impl Fn(&World) -> bool,
    ) -> Verdict {
        let job = &mut self.jobs[job];
        let kept: Vec<_> =
            job.worlds.iter().filter(|world| is_possible(world)).copied().collect();
        if kept.is_empty() {
            return Err(format!("{rule}: {}", job.tell()));
        }
        job.worlds = kept;
        Ok(())
    }

    /// The jobs that have a world of that kind, and whether it is their only kind.
    pub(crate) fn count(&self, is_so: impl Fn(&Job, &World) -> bool) -> (u64, u64) {
        let (mut surely, mut maybe) = (0, 0);
        for job in &self.jobs {
            surely += u64::from(job.worlds.iter().all(|world| is_so(job, world)));
            maybe += u64::from(job.worlds.iter().any(|world| is_so(job, world)));
        }
        (surely, maybe)
    }

    /// How many jobs may be unfinished.
    pub(crate) fn unfinished(&self) -> u64 {
        let is_unfinished = |world: &World| {
            let place = world.place;
            matches!(
                place,
                Place::Scheduled { .. } | Place::Ready(_) | Place::Leased(_)
            )
        };
        self.count(|_, world| is_unfinished(world)).1
    }

    /// Ends an operation: what time has done, and what follows for other jobs.
    pub(crate) fn conclude(&mut self) -> Verdict {
        self.ripen();
        self.all_or_none()?;
        self.one_holder()?;
        self.step += 1;
        Ok(())
    }

    /// What is due may be made ready at any call, and what has expired be buried.
    fn ripen(&mut self) {
        let (now, step) = (self.now, self.step);
        for job in &mut self.jobs {
            for world in job.worlds.clone() {
                if let Place::Scheduled { due } = world.place
                    && due <= now
                    && !job.worlds.iter().any(|other| other.fell_due_at(due))
                {
                    let from = (step, 0);
                    let turn = Turn::Back { from, to: LAST, due: Some(due) };
                    add(&mut job.worlds, world.at(Place::Ready(turn)));
                }
                let waits =
                    matches!(world.place, Place::Scheduled { .. } | Place::Ready(_));
                if waits && world.may_be_expired(now) {
                    add(&mut job.worlds, world.at(Place::Dead));
                }
            }
        }
    }

    /// R5: one stored job of a call proves the others, one that is not disproves
    /// them.
    fn all_or_none(&mut self) -> Verdict {
        let is_absent = |world: &World| world.place == Place::Absent;
        for at in 0..self.jobs.len() {
            let call = self.jobs[at].call;
            let worlds = &self.jobs[at].worlds;
            let stored = !worlds.iter().any(is_absent);
            let absent = worlds.iter().all(is_absent);
            if !stored && !absent {
                continue;
            }
            for other in 0..self.jobs.len() {
                if self.jobs[other].call == call {
                    self.keep(other, "R5, all or nothing", |world| {
                        is_absent(world) == absent
                    })?;
                }
            }
        }
        Ok(())
    }

    /// R16: who surely holds a key proves that nobody else does.
    fn one_holder(&mut self) -> Verdict {
        let now = self.now;
        for at in 0..self.jobs.len() {
            let Some(key) = self.jobs[at].key().cloned() else { continue };
            if !self.jobs[at].worlds.iter().all(|world| world.holds_key(now)) {
                continue;
            }
            for other in (0..self.jobs.len()).filter(|other| *other != at) {
                if self.jobs[other].key() == Some(&key) {
                    self.keep(other, "UNIQUE, R16: a second holder", |world| {
                        !world.holds_key(now)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// DUP-BOUND, R6: a job runs again for a reason only.
    pub(crate) fn duplicates_are_bounded(&self) -> Verdict {
        match self.jobs.iter().find(|job| job.runs > 1 + job.returns) {
            None => Ok(()),
            Some(job) => Err(format!(
                "DUP-BOUND, R6: ran {} times, came back {} times: {}",
                job.runs,
                job.returns,
                job.tell(),
            )),
        }
    }

    pub(crate) fn job_of(&self, payload: &Bytes) -> Option<usize> {
        self.jobs.iter().position(|job| job.spec.payload == *payload)
    }
}

impl Job {
    pub(crate) fn key(&self) -> Option<&UniqueKey> {
        self.spec.unique.as_ref().map(|unique| &unique.key)
    }

    /// Whether a `Retry` or an ended lease buries it (R11).
    pub(crate) fn is_last(&self, world: &World) -> bool {
        world.attempt >= u32::from(self.spec.max_attempts.get())
    }

    /// For a message: which job, and what was thought of it.
    pub(crate) fn tell(&self) -> String {
        let payload = self.spec.payload.escape_ascii();
        format!("job {payload}, which had to be one of {:?}", self.worlds)
    }
}

fn is_back(world: &World) -> bool {
    matches!(world.place, Place::Ready(_) | Place::Scheduled { .. })
}

/// A world more, unless it is known.
pub(crate) fn add(worlds: &mut Vec<World>, world: World) {
    if !worlds.contains(&world) {
        worlds.push(world);
    }
}

impl Lease {
    /// Where a job goes that comes back by `back`.
    pub(crate) fn back(&self, class: &Class, back: Moment) -> Place {
        Place::Ready(class.back((self.claim, self.index), self.until, back))
    }
}

/// The end of a job that is remembered for `WINDOW`.
pub(crate) fn is_remembered(end: End, at: Ms, now: Ms) -> bool {
    end != End::Purged && now < at + WINDOW
}
