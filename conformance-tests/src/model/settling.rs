//! What settlements and heartbeats do, by the rules.

use queue_core::{Extended, Settled};

use super::{
    book::{Book, Job, Knowledge, Verdict, WINDOW},
    operation::Says,
    world::{End, Lease, Ms, Place, World},
};

/// What is said of which of the told receipts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    pub(crate) told: usize,
    pub(crate) says: Says,
    /// How long until it is tried again.
    pub(crate) after: Ms,
}

impl Book {
    /// A settlement that was answered.
    pub(crate) fn settled(&mut self, said: &[Said], answers: &[Settled]) -> Verdict {
        if said.len() != answers.len() {
            return Err(format!("R7: {answers:?} to {} settlements", said.len()));
        }
        let keep_order = self.is_in_order(said);
        for (position, (one, answer)) in said.iter().zip(answers).enumerate() {
            let back = (self.step, if keep_order { 0 } else { position });
            self.one_settled(*one, *answer, back)?;
        }
        Ok(())
    }

    /// A settlement whose answer was lost: each of it may have happened.
    pub(crate) fn maybe_settled(&mut self, said: &[Said]) {
        for (position, one) in said.iter().enumerate() {
            let (now, back) = (self.now, (self.step, position));
            let class = self.class.clone();
            self.maybe(|job, world| match world.lease() {
                Some(lease) if lease.receipt == Some(one.told) => {
                    let place = lease.back(&class, back);
                    carried_out(job, world, *one, place, now)
                }
                _ => Vec::new(),
            });
        }
    }

    fn one_settled(
        &mut self,
        said: Said,
        answer: Settled,
        back: (u32, usize),
    ) -> Verdict {
        let (now, held) = (self.now, self.told[said.told].job);
        let payload = self.jobs[held].spec.payload.clone();
        let class = self.class.clone();
        let rule = match answer {
            Settled::Applied => "FENCE-ACK, R7: a lost lease is settled",
            Settled::LeaseLost => "R6: a lease that runs is lost",
        };
        self.each(Knowledge::Done, rule, |job, world| {
            if job.spec.payload != payload {
                return vec![*world];
            }
            let lease = world.lease().filter(|it| it.receipt == Some(said.told));
            match (lease, answer) {
                (Some(lease), Settled::Applied) => {
                    carried_out(job, world, said, lease.back(&class, back), now)
                }
                (Some(lease), Settled::LeaseLost) if lease.until > now => Vec::new(),
                (None, Settled::Applied) => Vec::new(),
                (_, Settled::LeaseLost) => vec![*world],
            }
        })
    }

    /// Whether jobs of one claim are named in the order of its answer: only then is
    /// their own order the same in every sense (R13).
    fn is_in_order(&self, said: &[Said]) -> bool {
        let lease = |said: &Said| self.told[said.told].lease;
        let places: Vec<_> =
            said.iter().map(lease).map(|it| (it.claim, it.index)).collect();
        places.is_sorted()
    }

    /// A heartbeat that was answered.
    pub(crate) fn extended(
        &mut self,
        run: usize,
        named: &[usize],
        until: Ms,
        answers: &[(Extended, Option<Ms>)],
    ) -> Verdict {
        if named.len() != answers.len() {
            return Err(format!("R7: {answers:?} to {} receipts", named.len()));
        }
        for (told, (answer, end)) in named.iter().zip(answers) {
            if end.is_some_and(|end| end != until) {
                return Err(format!("R6: extended until {end:?} and not {until}"));
            }
            self.one_extended(*told, until, *answer)?;
        }
        self.maybe_unnamed(run, named);
        Ok(())
    }

    /// R10: where a worker's jobs live by its heartbeat, those that it does not name
    /// are given back, or their leases run out. Such a delivery may count or not.
    fn maybe_unnamed(&mut self, run: usize, named: &[usize]) {
        if !self.class.shares_heartbeat() {
            return;
        }
        let (class, back) = (self.class.clone(), (self.step, 0));
        self.maybe(|_, world| match world.lease() {
            Some(lease)
                if lease.run == run
                    && lease.receipt.is_none_or(|told| !named.contains(&told)) =>
            {
                let counted = world.at(lease.back(&class, back));
                let attempt = world.attempt.saturating_sub(1);
                vec![counted, World { attempt, ..counted }]
            }
            _ => Vec::new(),
        });
    }

    /// A heartbeat whose answer was lost.
    pub(crate) fn maybe_extended(&mut self, run: usize, named: &[usize], until: Ms) {
        self.maybe_unnamed(run, named);
        for told in named {
            self.maybe(|_, world| match world.lease() {
                Some(lease) if lease.receipt == Some(*told) => {
                    vec![world.at(Place::Leased(Lease { until, ..*lease }))]
                }
                _ => Vec::new(),
            });
        }
    }

    fn one_extended(&mut self, told: usize, until: Ms, answer: Extended) -> Verdict {
        let (now, job) = (self.now, self.told[told].job);
        self.keep(job, &format!("FENCE-EXTEND, R7: {answer:?}"), |world| {
            match (world.place, answer) {
                (Place::Leased(lease), _) if lease.receipt == Some(told) => {
                    match answer {
                        Extended::Until(_) => true,
                        Extended::LeaseLost => lease.until <= now,
                        Extended::Cancelled => false,
                    }
                }
                (Place::Gone { end: End::Cancelled(Some((it, ended))), at }, _)
                    if it == told =>
                {
                    let is_known = now < ended.max(at) + WINDOW;
                    answer == Extended::Cancelled
                        || (answer == Extended::LeaseLost && !is_known)
                }
                (Place::Gone { end: End::Purged, .. }, Extended::Cancelled) => false,
                (_, answer) => answer == Extended::LeaseLost,
            }
        })?;
        if let Extended::Until(_) = answer {
            for world in &mut self.jobs[job].worlds {
                if let Place::Leased(lease) = &mut world.place {
                    lease.until = until;
                }
            }
        }
        Ok(())
    }
}

/// What a verdict makes of a leased job; `back` is where it stands when it comes back.
fn carried_out(
    job: &Job,
    world: &World,
    said: Said,
    back: Place,
    now: Ms,
) -> Vec<World> {
    vec![match said.says {
        Says::Done => world.ended(End::Finished, now),
        Says::Discard => world.ended(End::Discarded, now),
        Says::Bury => world.at(Place::Dead),
        Says::Retry(_) if job.is_last(world) => world.at(Place::Dead),
        Says::Retry(_) => world.at(Place::Scheduled { due: now + said.after }),
        Says::GiveBack => {
            let attempt = world.attempt.saturating_sub(1);
            World { attempt, ..world.at(back) }
        }
    }]
}
