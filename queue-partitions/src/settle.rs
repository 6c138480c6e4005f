//! Settlements and heartbeats: each goes to the part that the receipt names. The parts
//! are called at the same time, and the results come in the order of the call.
//!
//! A settlement for a part that was silent is refused at once while that part is left out
//! and another is up. While a settlement fails, a worker sends one call at a time, so the
//! settlements for the other parts would wait for the time limits of a silent node.

use std::time::Duration;

use futures_util::{
    Stream, StreamExt,
    future::{Either, join, join_all, select},
    stream::FuturesUnordered,
};
use relq_core::{
    ClaimRequest, Delivery, Error, Receipt, ReliableQueue, Settlement, WorkerId,
    error::Operation,
    outcome::{Extended, Settled, SettledAndClaimed},
};

use crate::{
    FairTurn, Partitioned,
    claim::AskAgain,
    health::is_temporary,
    joined::{self, PartErrors},
    receipt::{Group, grouped, unwrap, wrap},
};

/// The results of one part, with the positions in the call to which they belong.
type Answers<T> = Result<(Vec<usize>, Vec<T>), Error>;

/// The result of a heartbeat of one part, with the positions of its leases in the call.
/// There is none if the part was silent.
type ExtendedInPart = (Vec<usize>, Option<Result<Vec<Extended>, Error>>);

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    /// Refuses a call that a part would refuse, before any other part settles.
    pub(crate) fn check_settle(&self, done: &[Settlement]) -> Result<(), Error> {
        self.capabilities().check_batch(Operation::Settle, done.len())?;
        self.capabilities().check_settlements(done)
    }

    pub(crate) async fn settle_by_part(
        &self,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let groups = self.settlements_by_part(done);
        let answers =
            join_all(groups.into_iter().map(|group| self.settle_group(group)));
        in_order(answers.await, done.len(), Settled::LeaseLost)
    }

    pub(crate) async fn extend_by_part(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let groups = grouped(held.iter().map(|one| unwrap(one, self.parts.len())));
        let calls = groups.iter().enumerate().map(async |(at, group)| {
            let part = &self.parts[group.part];
            let extended = part.extend(worker, &group.members, lease).await;
            self.notice(group.part, &extended);
            (at, extended)
        });
        let calls: FuturesUnordered<_> = calls.collect();
        let mut answers: Vec<_> = groups.iter().map(|_| None).collect();
        self.answer_beside_silent_parts(calls, lease / 3, &mut answers).await;
        let answers = groups.into_iter().map(|group| group.positions).zip(answers);
        in_order(unknown_in_part(answers.collect()), held.len(), Extended::LeaseLost)
    }

    /// Waits for the answers of the parts. Once a part has answered, it waits no longer
    /// than `patience` for the others, so that a part whose node is silent does not delay
    /// the next heartbeat for the leases of the others until they expire.
    async fn answer_beside_silent_parts<T>(
        &self,
        mut calls: impl Stream<Item = (usize, Result<T, Error>)> + Unpin,
        patience: Duration,
        answers: &mut [Option<Result<T, Error>>],
    ) {
        let mut is_any_up = false;
        let mut end = self.environment.clock().sleep(patience);
        loop {
            let next = match is_any_up {
                true => match select(calls.next(), &mut end).await {
                    Either::Left((next, _)) => next,
                    Either::Right(_) => return,
                },
                false => calls.next().await,
            };
            let Some((at, answer)) = next else { return };
            is_any_up |= answer.is_ok();
            answers[at] = Some(answer);
        }
    }

    /// Settles, and claims from one of the parts in the same round trip. If that part
    /// has fewer jobs than asked for, the other parts are asked, too.
    pub(crate) async fn settle_and_claim_by_part(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let settle = self.check_settle(done);
        let claim = self.capabilities().check_claim(ask);
        if let Err(error) = self.begin_write(Operation::Settle).await {
            let claimed = self.begin_write(Operation::Claim).await.map(|()| Vec::new());
            return SettledAndClaimed { settled: Err(error), claimed };
        }
        // If one half is refused, the other is still done.
        let (Ok(()), Ok(())) = (settle, claim) else {
            let at_once = ask.clone().wait(Duration::ZERO);
            let (settled, claimed) =
                (self.settle(done).await, self.claim(&at_once).await);
            return SettledAndClaimed { settled, claimed };
        };
        self.settle_beside_claim(done, ask).await
    }

    async fn settle_beside_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let mut groups = self.settlements_by_part(done);
        let part = self.part_to_claim_from(&groups);
        let at = groups.iter().position(|group| group.part == part);
        let here = at.map(|at| groups.swap_remove(at));
        let others = join_all(groups.into_iter().map(|group| self.settle_group(group)));
        let (mut answers, (here, claimed)) =
            join(others, self.settle_and_claim_at(part, here, ask)).await;
        answers.extend(here);
        let settled = in_order(answers, done.len(), Settled::LeaseLost);
        // If a settlement made a job ready, ask the part again: it may have claimed before it
        // applied the last of several settlements.
        let makes_ready = |one: &Settlement| one.disposition.may_make_ready();
        let again =
            if done.iter().any(makes_ready) { AskAgain::Ask } else { AskAgain::Skip };
        let claimed = self.filled((part, again), ask, claimed).await;
        SettledAndClaimed { settled, claimed }
    }

    /// The part with most settlements or, now and then, the part whose turn it is. A
    /// part that is down is not claimed from.
    fn part_to_claim_from(&self, groups: &[Group<Settlement>]) -> usize {
        let largest = groups.iter().max_by_key(|group| group.members.len());
        let part = match largest {
            Some(group) => self.turn.next_after_settling(group.part),
            None => self.turn.next(),
        };
        let mut from_there = FairTurn::beginning_at(part, self.parts.len());
        from_there.find(|part| self.health.is_up(*part)).unwrap_or(part)
    }

    async fn settle_and_claim_at(
        &self,
        part: usize,
        group: Option<Group<Settlement>>,
        ask: &ClaimRequest,
    ) -> (Option<Answers<Settled>>, Result<Vec<Delivery>, Error>) {
        let (queue, began) = (&self.parts[part], self.health.now());
        let (settled, claimed) = match group {
            None => {
                let at_once = ask.clone().wait(Duration::ZERO);
                (None, queue.claim(&at_once).await)
            }
            Some(Group { positions, members, .. }) => {
                let both = queue.settle_and_claim(&members, ask).await;
                (Some(both.settled.map(|settled| (positions, settled))), both.claimed)
            }
        };
        self.notice_since(began, part, &claimed);
        (settled, claimed)
    }

    /// Adds jobs of the other parts to a claim that brought fewer than it asked for.
    async fn filled(
        &self,
        (part, again): (usize, AskAgain),
        ask: &ClaimRequest,
        claimed: Result<Vec<Delivery>, Error>,
    ) -> Result<Vec<Delivery>, Error> {
        let mut errors = PartErrors::default();
        let jobs = match claimed {
            Ok(jobs) => jobs.into_iter().map(|job| wrap(part, job)).collect(),
            Err(error) if is_temporary(&error) => {
                errors.add(error);
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        self.fill(ask, (jobs, errors), (part, again)).await
    }

    fn settlements_by_part(&self, done: &[Settlement]) -> Vec<Group<Settlement>> {
        grouped(done.iter().map(|one| {
            let (part, own) = unwrap(&one.receipt, self.parts.len())?;
            Some((part, Settlement::new(own, one.disposition.clone())))
        }))
    }

    async fn settle_group(&self, group: Group<Settlement>) -> Answers<Settled> {
        let left = self.health.silent_for(group.part);
        self.check_not_left_out(Operation::Settle, group.part, left)?;
        let began = self.health.now();
        let settled = self.parts[group.part].settle(&group.members).await;
        self.notice_since(began, group.part, &settled);
        Ok((group.positions, settled?))
    }
}

/// If some parts answered, the leases of the others are unknown, whatever their errors. An
/// error of the whole call would lose the leases that were extended. If no part answered, the
/// call fails.
fn unknown_in_part(answers: Vec<ExtendedInPart>) -> Vec<Answers<Extended>> {
    let is_any_up = answers.iter().any(|(_, extended)| matches!(extended, Some(Ok(_))));
    let of_part = |(positions, extended): ExtendedInPart| {
        let extended = match extended {
            Some(Ok(extended)) => extended,
            Some(Err(error)) if !is_any_up => return Err(error),
            Some(Err(error)) => {
                const WHAT: &str = "the leases of one part are not extended";
                let needs_help = error.needs_help();
                let error = error.full_message();
                match needs_help {
                    true => tracing::warn!(error, "{WHAT}"),
                    false => tracing::debug!(error, "{WHAT}"),
                }
                vec![Extended::Unknown; positions.len()]
            }
            None => vec![Extended::Unknown; positions.len()],
        };
        Ok((positions, extended))
    };
    answers.into_iter().map(of_part).collect()
}

/// Puts the results of the parts in the order of the call. A member that belongs to no
/// part gets `otherwise`.
fn in_order<T: Copy + PartialEq>(
    answers: Vec<Answers<T>>,
    length: usize,
    otherwise: T,
) -> Result<Vec<T>, Error> {
    let mut all = vec![otherwise; length];
    let has_changed =
        |(_, results): &(_, Vec<T>)| results.iter().any(|it| *it != otherwise);
    for (positions, results) in joined::of_writes(answers, has_changed)? {
        for (position, result) in positions.into_iter().zip(results) {
            all[position] = result;
        }
    }
    Ok(all)
}
