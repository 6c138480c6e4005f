//! The slots that several queues of one worker share, and the queue that gets the next
//! free slot.
//!
//! ```text
//!  a queue reports what it uses, and how many more jobs it would claim
//!            |
//!            v
//!  +------------------+  a free slot goes to   1. a leased job that has no slot
//!  | slots: N         |                        2. by strict order: the first queue
//!  | used and granted |                           that may have a job
//!  +------------------+                           by weight: the queue that is
//!            |                                    behind most
//!            v
//!  the queue sends a claim for the slots that it was granted
//! ```
//!
//! A slot is granted before the claim, so that no lease runs while its job waits for a
//! slot. A queue that is known to be empty, or whose store does not reply in time, is
//! granted none: so it does not hold up the others.
//!
//! The weights are kept by stride scheduling (Waldspurger and Weihl, 1995): each start of
//! a job moves the *pass* of its queue on by a step, which is the shorter the larger the
//! weight is, and the next slot goes to the smallest pass. A queue that had no job or no
//! store continues at the pass of the others, so it saves up no turns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use relq_core::limits::MAX_JOBS_PER_CALL;
use tokio::sync::Notify;

/// How many jobs a worker holds at most for each slot: one that runs, and one that has
/// ended and is not settled yet.
pub(crate) const HELD_PER_SLOT: usize = 2;

/// The step of a queue of weight 1. Steps of larger weights are rounded, by less than
/// one part in 2^32.
const LONGEST_STEP: u128 = 1 << 64;

/// Which queue gets the next free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// The first queue of the list that may have a job.
    Strict,
    /// The queues in proportion to their weights.
    ByWeight,
}

/// The slots of a worker on several queues.
#[derive(Debug)]
pub(crate) struct SlotPool(Mutex<State>);

/// The place of one queue in the pool.
#[derive(Debug, Clone)]
pub(crate) struct PoolMember {
    pool: Arc<SlotPool>,
    index: usize,
    granted: Arc<Notify>,
}

/// The jobs of a queue that use slots, and those for which it wants more.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Demand {
    /// The handlers of the queue that run.
    pub(crate) running: usize,
    /// The jobs that pending claims may return and for which a slot is kept.
    pub(crate) reserved: usize,
    /// The leased jobs that wait for a slot, because their claim took too long.
    pub(crate) waiting: usize,
    /// The jobs whose results are not settled yet. Zero if the store does not settle
    /// now, so that these jobs do not hold up other queues.
    pub(crate) unsettled: usize,
    /// How many more jobs the queue would claim.
    pub(crate) wanted: usize,
    /// How many jobs have started since the last report.
    pub(crate) started: usize,
    /// Whether the queue may have jobs and its store replies. If not, the queue saves
    /// up no turns.
    pub(crate) is_served: bool,
}

#[derive(Debug)]
struct State {
    capacity: usize,
    turns: Turns,
    members: Vec<Member>,
    /// The largest pass at which a slot was granted.
    reached: u128,
}

#[derive(Debug)]
struct Member {
    demand: Demand,
    /// The slots of the queue that no claim uses yet.
    granted: usize,
    step: u128,
    pass: u128,
    notify: Arc<Notify>,
}

impl SlotPool {
    /// Creates the members of a pool with `capacity` slots, one for each weight.
    pub(crate) fn members(
        capacity: usize,
        turns: Turns,
        weights: impl Iterator<Item = u32>,
    ) -> Vec<PoolMember> {
        let members: Vec<_> = weights.map(|it| Member::new(it, capacity)).collect();
        let notifies: Vec<_> =
            members.iter().map(|it| Arc::clone(&it.notify)).collect();
        let state = State { capacity, turns, members, reached: 0 };
        let pool = Arc::new(Self(Mutex::new(state)));
        let member = |(index, granted)| {
            let pool = Arc::clone(&pool);
            PoolMember { pool, index, granted }
        };
        notifies.into_iter().enumerate().map(member).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is safe to use: no code under it can panic in the middle of a
        // change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolMember {
    /// Reports what the queue uses and wants. Returns how many slots it was granted and
    /// has not [taken](Self::take).
    pub(crate) fn report(&self, demand: Demand) -> usize {
        let mut state = self.pool.lock();
        state.report(self.index, demand);
        state.distribute(self.index);
        state.members[self.index].granted
    }

    /// Uses granted slots: for a claim that is sent now, or for a job that starts.
    pub(crate) fn take(&self, slots: usize) {
        let mut state = self.pool.lock();
        let member = &mut state.members[self.index];
        member.granted = member.granted.saturating_sub(slots);
        member.demand.reserved += slots;
    }

    /// Completes when the queue was granted slots that another queue has left.
    pub(crate) async fn granted(&self) {
        self.granted.notified().await;
    }
}

impl State {
    fn report(&mut self, index: usize, demand: Demand) {
        let reached = self.reached;
        let member = &mut self.members[index];
        member.pass += member.step * demand.started as u128;
        if demand.is_served && !member.demand.is_served {
            member.pass = member.pass.max(reached);
        }
        member.demand = demand;
        member.granted = member.granted.min(demand.waiting + demand.wanted);
    }

    /// Grants the free slots, and notifies each queue that was granted one, except the
    /// queue that has just reported.
    fn distribute(&mut self, reporter: usize) {
        for _ in 0..self.free() {
            let Some(next) = self.next() else { return };
            self.members[next].granted += 1;
            if next != reporter {
                self.members[next].notify.notify_one();
            }
        }
    }

    /// How many slots can be granted: all that are not in use, but only so many that the
    /// worker holds at most [`HELD_PER_SLOT`] jobs for each slot.
    fn free(&self) -> usize {
        let used: usize = self.members.iter().map(Member::used).sum();
        let unsettled: usize = self.members.iter().map(|it| it.demand.unsettled).sum();
        let most_held = self.capacity.saturating_mul(HELD_PER_SLOT);
        let beside_unsettled = most_held.saturating_sub(used + unsettled);
        self.capacity.saturating_sub(used).min(beside_unsettled)
    }

    /// The queue that gets the next slot.
    fn next(&mut self) -> Option<usize> {
        let members = self.members.iter().enumerate();
        let mut leased =
            members.clone().filter(|(_, it)| it.granted < it.demand.waiting);
        if let Some((index, _)) = leased.next() {
            return Some(index);
        }
        let mut wanting = members.filter(|(_, member)| member.wants_more());
        if self.turns == Turns::Strict {
            return wanting.next().map(|(index, _)| index);
        }
        let (index, member) = wanting.min_by_key(|(_, member)| member.next_pass())?;
        self.reached = self.reached.max(member.next_pass());
        Some(index)
    }
}

impl Member {
    /// A queue that has not reported yet may have jobs. So a later queue does not get
    /// its slots only because it reports first.
    fn new(weight: u32, capacity: usize) -> Self {
        let of_one_call = MAX_JOBS_PER_CALL.get() as usize;
        let wanted = capacity.min(of_one_call);
        let all = Demand { wanted, is_served: true, ..Demand::default() };
        Self {
            demand: all,
            granted: 0,
            step: LONGEST_STEP / u128::from(weight.max(1)),
            pass: 0,
            notify: Arc::new(Notify::new()),
        }
    }

    fn used(&self) -> usize {
        self.demand.running + self.demand.reserved + self.granted
    }

    fn wants_more(&self) -> bool {
        self.granted < self.demand.waiting + self.demand.wanted
    }

    /// The pass of the queue when all jobs have started for which it has slots.
    fn next_pass(&self) -> u128 {
        self.pass + self.step * (self.granted + self.demand.reserved) as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: Demand = Demand {
        running: 0,
        reserved: 0,
        waiting: 0,
        unsettled: 0,
        wanted: 100,
        started: 0,
        is_served: true,
    };

    /// A pool whose queues have all reported that they are empty.
    fn pool(turns: Turns, weights: &[u32]) -> Vec<PoolMember> {
        let members = SlotPool::members(10, turns, weights.iter().copied());
        members.iter().for_each(|member| {
            member.report(Demand::default());
        });
        members
    }

    fn granted(member: &PoolMember) -> usize {
        member.pool.lock().members[member.index].granted
    }

    /// Starts a job on each slot that the queues were granted, and ends it. Returns how
    /// many jobs of each queue ran.
    fn run_all(members: &[PoolMember]) -> Vec<usize> {
        let ran: Vec<_> = members.iter().map(granted).collect();
        for (member, &started) in members.iter().zip(&ran) {
            member.take(started);
            member.report(Demand { running: started, started, ..LOADED });
        }
        members.iter().for_each(|member| {
            member.report(LOADED);
        });
        ran
    }

    #[test]
    fn loaded_queues_get_slots_by_their_weights() {
        let members = pool(Turns::ByWeight, &[6, 3, 1]);
        members.iter().for_each(|member| {
            member.report(LOADED);
        });
        let mut ran = [0; 3];

        for _ in 0..1000 {
            run_all(&members).iter().zip(&mut ran).for_each(|(new, sum)| *sum += new);
        }

        assert_eq!(ran.iter().sum::<usize>(), 10_000, "no slot stays free");
        for (ran, share) in ran.into_iter().zip([6000_usize, 3000, 1000]) {
            assert!(ran.abs_diff(share) <= 10, "{ran} of {share}");
        }
    }

    /// A queue that was empty has no claim on the turns that it did not use.
    #[test]
    fn an_empty_queue_saves_up_no_turns() {
        let members = pool(Turns::ByWeight, &[1, 1]);
        members[0].report(LOADED);
        for _ in 0..100 {
            run_all(&members[..1]);
        }
        members[0].take(10);
        members[0].report(Demand { running: 10, started: 10, ..LOADED });

        members[1].report(LOADED);
        members[0].report(LOADED);

        assert_eq!(granted(&members[0]), 5, "of the queue that was loaded");
        assert_eq!(granted(&members[1]), 5, "of the queue that was empty");
    }

    #[test]
    fn strict_order_gives_all_slots_to_the_first_loaded_queue() {
        let members = pool(Turns::Strict, &[1, 1]);
        let few = Demand { wanted: 4, ..LOADED };

        assert_eq!(members[0].report(few), 4);
        assert_eq!(members[1].report(LOADED), 6, "what the first leaves");
        members[1].take(6);
        members[0].report(LOADED);
        members[1].report(LOADED);

        assert_eq!((granted(&members[0]), granted(&members[1])), (10, 0));
    }

    #[test]
    fn a_queue_that_has_not_reported_keeps_its_turn() {
        let members = SlotPool::members(10, Turns::Strict, [1, 1].into_iter());

        assert_eq!(members[1].report(LOADED), 0, "before the first has reported");
        members[0].report(Demand { wanted: 1, ..LOADED });

        assert_eq!((granted(&members[0]), granted(&members[1])), (1, 9));
    }

    /// A job that has a lease already must not wait while others are claimed.
    #[test]
    fn a_leased_job_gets_the_next_slot() {
        let members = pool(Turns::Strict, &[1, 1]);
        members[0].report(LOADED);
        members[0].take(10);
        members[0].report(Demand { running: 10, ..LOADED });
        members[1].report(Demand { waiting: 1, wanted: 0, ..LOADED });

        members[0].report(Demand { running: 9, ..LOADED });

        assert_eq!((granted(&members[0]), granted(&members[1])), (0, 1));
    }

    #[test]
    fn jobs_that_are_not_settled_count_up_to_two_a_slot() {
        let members = pool(Turns::ByWeight, &[1, 1]);

        let granted = members[0].report(Demand { unsettled: 17, ..LOADED });

        assert_eq!(granted, 3, "17 of 20 jobs wait for their settlement");
    }

    /// A queue gets at most the slots that its next claim can use. Otherwise the slots of a
    /// very large pool would be distributed one by one, for seconds.
    #[test]
    fn a_queue_gets_the_slots_of_one_claim_at_once() {
        let capacity = u32::MAX as usize;
        let members = SlotPool::members(capacity, Turns::ByWeight, [1, 1].into_iter());

        members[0].report(LOADED);

        assert_eq!((granted(&members[0]), granted(&members[1])), (100, 1000));
    }
}
