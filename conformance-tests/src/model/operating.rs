//! What an operator does, by the rules.

use queue_core::{Cancelled, JobId, JobState, Redriven};

use super::{
    book::{Book, Job, Knowledge, Verdict},
    returning::in_range,
    world::{Counted, End, Place, World},
};
use crate::turn::Turn;

impl Book {
    /// A cancellation that was answered.
    pub(crate) fn cancelled(&mut self, id: &JobId, answer: Cancelled) -> Verdict {
        let now = self.now;
        let is_there = |world: &World| match answer {
            Cancelled::Removed(state) => world.counted() == Counted::In(state),
            Cancelled::NotFound => !is_cancellable(world),
        };
        let named: Vec<_> = (0..self.jobs.len())
            .filter(|at| self.jobs[*at].id.as_ref() == Some(id))
            .collect();
        let rule = format!("CANCEL: {answer:?}");
        if answer == Cancelled::NotFound {
            return named.into_iter().try_for_each(|at| self.keep(at, &rule, is_there));
        }
        let may_be_it = |at: &usize| self.jobs[*at].worlds.iter().any(is_there);
        let found: Vec<_> = named.into_iter().filter(may_be_it).collect();
        let at = match found[..] {
            [] => return Err(format!("{rule}: {id}, which is no such job")),
            [at] => at,
            // A push of the same id whose answer was lost: one of them was meant.
            _ => {
                self.maybe_cancelled(id);
                return Ok(());
            }
        };
        self.keep(at, &rule, is_there)?;
        let worlds = std::mem::take(&mut self.jobs[at].worlds);
        for world in worlds {
            super::book::add(&mut self.jobs[at].worlds, cancel(&world, now));
        }
        Ok(())
    }

    /// A cancellation whose answer was lost.
    pub(crate) fn maybe_cancelled(&mut self, id: &JobId) {
        let now = self.now;
        self.maybe(|job, world| {
            if job.id.as_ref() == Some(id) && is_cancellable(world) {
                vec![cancel(world, now)]
            } else {
                Vec::new()
            }
        });
    }

    /// Dead jobs made ready; `which` is none for all.
    pub(crate) fn redriven(
        &mut self,
        which: Option<usize>,
        answer: &Redriven,
    ) -> Verdict {
        let total = self.dead_of(which);
        in_range("R16: redriven", answer.moved + answer.duplicates, total)?;
        let (step, contested) = (self.step, self.contested(which));
        let fates: Vec<_> =
            self.jobs.iter().map(|job| self.fate(job, &contested)).collect();
        let moves = self.count_moves(which, &fates);
        in_range("R16: made ready again", answer.moved, moves)?;
        for (at, fate) in fates.into_iter().enumerate() {
            let is_meant = which.is_none_or(|it| it == at);
            let job = &mut self.jobs[at];
            if !is_meant {
                continue;
            }
            let mut next = Vec::new();
            for world in &job.worlds {
                let moved = redrive(world, step);
                if moved.is_empty() || fate != Fate::Moves {
                    super::book::add(&mut next, *world);
                }
                if fate != Fate::Stays {
                    job.returns += u32::from(!moved.is_empty());
                    moved.into_iter().for_each(|it| super::book::add(&mut next, it));
                }
            }
            job.worlds = next;
        }
        Ok(())
    }

    /// A redrive whose answer was lost.
    pub(crate) fn maybe_redriven(&mut self, which: Option<usize>) {
        let step = self.step;
        for at in 0..self.jobs.len() {
            if which.is_some_and(|it| it != at) {
                continue;
            }
            let job = &mut self.jobs[at];
            for world in job.worlds.clone() {
                for moved in redrive(&world, step) {
                    job.returns += 1;
                    super::book::add(&mut job.worlds, moved);
                }
            }
        }
    }

    /// Dead jobs removed.
    pub(crate) fn dead_purged(&mut self, removed: u64) -> Verdict {
        in_range("R23: dead jobs removed", removed, self.dead_of(None))?;
        let now = self.now;
        self.each(Knowledge::Done, "", |_, world| match world.place {
            Place::Dead => vec![world.ended(End::PurgedDead, now)],
            _ => vec![*world],
        })
    }

    /// A removal of the dead whose answer was lost.
    pub(crate) fn maybe_dead_purged(&mut self) {
        let now = self.now;
        self.maybe(|_, world| match world.place {
            Place::Dead => vec![world.ended(End::PurgedDead, now)],
            _ => Vec::new(),
        });
    }

    /// Every job removed, and all that was remembered.
    pub(crate) fn purged(&mut self, removed: u64) -> Verdict {
        let is_in = |_: &Job, world: &World| matches!(world.counted(), Counted::In(_));
        in_range("R23: jobs purged", removed, self.count(is_in))?;
        self.calls.clear();
        let now = self.now;
        self.each(Knowledge::Done, "", |_, world| vec![purge(world, now)])
    }

    /// A purge whose answer was lost.
    pub(crate) fn maybe_purged(&mut self) {
        self.calls.clear();
        let now = self.now;
        self.maybe(|_, world| vec![purge(world, now)]);
    }

    /// Claims were paused or resumed, or may have been.
    pub(crate) fn steered(&mut self, paused: bool, known: Knowledge) {
        if known == Knowledge::Done {
            self.paused.clear();
        }
        if !self.paused.contains(&paused) {
            self.paused.push(paused);
        }
    }

    fn dead_of(&self, which: Option<usize>) -> (u64, u64) {
        let is_dead = |world: &World| world.place == Place::Dead;
        let (mut surely, mut maybe) = (0, 0);
        for (at, job) in self.jobs.iter().enumerate() {
            if which.is_none_or(|it| it == at) {
                surely += u64::from(job.worlds.iter().all(is_dead));
                maybe += u64::from(job.worlds.iter().any(is_dead));
            }
        }
        (surely, maybe)
    }

    /// Keys that more than one of the dead want.
    fn contested(&self, which: Option<usize>) -> Vec<queue_core::UniqueKey> {
        let wants = |job: &&Job| {
            let may_be_dead = job.worlds.iter().any(|it| it.place == Place::Dead);
            which.is_none() && may_be_dead
        };
        let keys: Vec<_> =
            self.jobs.iter().filter(wants).filter_map(Job::key).collect();
        let is_twice = |key: &&queue_core::UniqueKey| {
            keys.iter().filter(|other| *other == key).count() > 1
        };
        keys.iter().copied().filter(is_twice).cloned().collect()
    }

    fn fate(&self, job: &Job, contested: &[queue_core::UniqueKey]) -> Fate {
        let Some(key) = job.key() else { return Fate::Moves };
        let now = self.now;
        let others = self.jobs.iter().filter(|other| {
            other.key() == Some(key) && other.spec.payload != job.spec.payload
        });
        let mut fate = Fate::Moves;
        for other in others {
            if other.worlds.iter().all(|world| world.holds_key(now)) {
                return Fate::Stays;
            }
            if other.worlds.iter().any(|world| world.may_hold_key(now)) {
                fate = Fate::Either;
            }
        }
        if contested.contains(key) { Fate::Either } else { fate }
    }

    fn count_moves(&self, which: Option<usize>, fates: &[Fate]) -> (u64, u64) {
        let (mut surely, mut maybe) = (0, 0);
        for (at, (job, fate)) in self.jobs.iter().zip(fates).enumerate() {
            if which.is_some_and(|it| it != at) {
                continue;
            }
            let mut dead = job.worlds.iter().map(|world| world.place == Place::Dead);
            surely += u64::from(*fate == Fate::Moves && dead.clone().all(|it| it));
            maybe += u64::from(*fate != Fate::Stays && dead.any(|it| it));
        }
        (surely, maybe)
    }
}

/// What becomes of a dead job that is redriven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Moves,
    Stays,
    Either,
}

fn is_cancellable(world: &World) -> bool {
    let states = [JobState::Scheduled, JobState::Ready, JobState::Leased];
    states.into_iter().any(|state| world.counted() == Counted::In(state))
}

fn cancel(world: &World, now: u64) -> World {
    let lease = world.lease().and_then(|it| Some((it.receipt?, it.until)));
    world.ended(End::Cancelled(lease), now)
}

/// To the back, as a first delivery; an expiry may be dropped, and one that has passed
/// is (R17).
fn redrive(world: &World, step: u32) -> Vec<World> {
    if world.place != Place::Dead {
        return Vec::new();
    }
    let turn = Turn::Back { from: (step, 0), to: (step, usize::MAX), due: None };
    let fresh = World { attempt: 0, expires: None, ..world.at(Place::Ready(turn)) };
    let mut becomes = vec![fresh];
    super::book::add(&mut becomes, World { expires: world.expires, ..fresh });
    becomes
}

fn purge(world: &World, now: u64) -> World {
    match world.place {
        Place::Absent | Place::Refused => *world,
        _ => world.ended(End::Purged, now),
    }
}
