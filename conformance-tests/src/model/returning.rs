//! What `leave` and `recover` do, by the rules.

use queue_core::Recovered;

use super::{
    book::{Book, Job, Knowledge, Verdict},
    world::{Place, World},
};
use crate::{
    class::Class,
    turn::{LAST, Moment, Turn},
};

impl Book {
    /// A worker's leaving that was answered with that many jobs (R24).
    pub(crate) fn left(&mut self, run: usize, jobs: u64) -> Verdict {
        let now = self.now;
        let is_held = |world: &World| world.lease().is_some_and(|it| it.run == run);
        let is_sure = |world: &World| is_held(world) && world.overdue(now).is_none();
        let least = self.count(|_, world| is_sure(world)).0;
        let most = self.count(|_, world| is_held(world)).1;
        in_range("R24: jobs given back by leaving", jobs, (least, most))?;
        let back = (self.step, 0);
        let class = self.class.clone();
        self.each(Knowledge::Done, "R24", |_, world| {
            let mut becomes = given_back(&class, world, run, back);
            if becomes.is_empty() || world.overdue(now).is_some() {
                becomes.push(*world);
            }
            becomes
        })
    }

    /// A worker's leaving whose answer was lost.
    pub(crate) fn maybe_left(&mut self, run: usize) {
        let (back, class) = ((self.step, 0), self.class.clone());
        self.maybe(|_, world| given_back(&class, world, run, back));
    }

    /// A page of recovery that was answered.
    pub(crate) fn recovered(&mut self, page: u64, answer: &Recovered) -> Verdict {
        let now = self.now;
        let ends = |job: &Job, world: &World, is_last: bool| {
            world.overdue(now).is_some() && job.is_last(world) == is_last
        };
        let back = self.count(|job, world| ends(job, world, false));
        let buried = self.count(|job, world| ends(job, world, true));
        let due = self.count(|_, world| is_due(world, now));
        let range = |(surely, maybe)| (if answer.more { 0 } else { surely }, maybe);
        let (requeued, dead) = (u64::from(answer.requeued), u64::from(answer.buried));
        in_range("REAP-ONCE, R12: requeued", requeued, range(back))?;
        in_range("R11: buried by recovery", dead, range(buried))?;
        in_range("R14: promoted", u64::from(answer.promoted), range(due))?;
        in_range("R9: recovered by one page", requeued + dead, (0, page))?;
        let (step, more, class) = (self.step, answer.more, self.class.clone());
        self.each(Knowledge::Done, "R9", |job, world| {
            let mut becomes = taken_back(&class, job, world, now, step);
            if becomes.is_empty() || (more && becomes[0].place != world.place) {
                super::book::add(&mut becomes, *world);
            }
            becomes
        })
    }

    /// A page of recovery whose answer was lost.
    pub(crate) fn maybe_recovered(&mut self) {
        let (now, step, class) = (self.now, self.step, self.class.clone());
        self.maybe(|job, world| taken_back(&class, job, world, now, step));
    }
}

fn given_back(class: &Class, world: &World, run: usize, back: Moment) -> Vec<World> {
    match world.lease() {
        Some(lease) if lease.run == run => {
            let attempt = world.attempt.saturating_sub(1);
            vec![World { attempt, ..world.at(lease.back(class, back)) }]
        }
        _ => Vec::new(),
    }
}

fn is_due(world: &World, now: u64) -> bool {
    matches!(world.place, Place::Scheduled { due } if due <= now)
}

/// What a reaper makes of what time has ended; nothing of the rest.
fn taken_back(
    class: &Class,
    job: &Job,
    world: &World,
    now: u64,
    step: u32,
) -> Vec<World> {
    match world.place {
        Place::Leased(lease) if lease.until <= now => {
            let back = || lease.back(class, (step, 0));
            vec![world.at(if job.is_last(world) { Place::Dead } else { back() })]
        }
        Place::Scheduled { due } if due <= now => {
            let turn =
                Turn::Back { from: (step, 0), to: (step, usize::MAX), due: Some(due) };
            vec![world.at(Place::Ready(turn))]
        }
        Place::Ready(Turn::Back { from, to: LAST, due }) => {
            let turn = Turn::Back { from, to: (step, usize::MAX), due };
            vec![world.at(Place::Ready(turn))]
        }
        _ => Vec::new(),
    }
}

/// A number that has to lie between two others.
pub(crate) fn in_range(rule: &str, number: u64, (from, to): (u64, u64)) -> Verdict {
    if (from..=to).contains(&number) {
        return Ok(());
    }
    Err(format!("{rule}: {number}, and not {from} to {to}"))
}
