//! A text of all that the reference model knows, which is equal for two models that
//! judge every later call alike.
//!
//! The model numbers operations, jobs and receipts in the order in which it met them.
//! Calls that do not affect each other leave models that differ in these numbers alone.
//! So the text has the rank of an operation in place of its number, and the jobs and
//! receipts sorted by what they contain.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    possible_state::{End, JobLocation, Lease, PossibleState},
    ready_order::{LAST, ReadyPosition},
    reference::{Job, Reference},
    runner::Runner,
    scheduling::PossibleSchedule,
};

impl Runner {
    /// Returns a text that is equal to that of another runner if both judge every later
    /// recorded call alike.
    pub(super) fn fingerprint(&self) -> String {
        let mut reference = self.reference.clone();
        rank(reference.operations());
        let receipts = reference.sort_receipts();
        reference.sort_jobs();
        let observed: Vec<_> = self
            .observed
            .iter()
            .map(|(who, all)| (who, all.iter().map(|at| receipts[*at])))
            .map(|(who, all)| (who, all.collect::<Vec<_>>()))
            .collect();
        let Reference { now, jobs, observed: leases, calls, batches, .. } = &reference;
        let Reference { paused, links, started, .. } = &reference;
        let Reference { schedules, lost_ticks, .. } = &reference;
        let of_reference = (now, jobs, leases, calls, batches, paused, links, started);
        let of_reference = (of_reference, schedules, lost_ticks);
        format!("{of_reference:?} {observed:?} {:?} {:?}", self.runs, self.late)
    }
}

/// Replaces each number by its rank among all of them. A number that stands for the end
/// of all operations stays.
fn rank(numbers: Vec<&mut u32>) {
    let known: BTreeSet<u32> = numbers.iter().map(|number| **number).collect();
    let ranks: BTreeMap<u32, u32> = known.into_iter().zip(0..).collect();
    for number in numbers.into_iter().filter(|number| **number != LAST.0) {
        *number = ranks[number];
    }
}

impl Reference {
    /// All numbers of operations that the model keeps.
    fn operations(&mut self) -> Vec<&mut u32> {
        let Self { jobs, calls, batches, schedules, lost_ticks, .. } = self;
        let of_jobs = jobs.iter_mut().flat_map(Job::operations);
        let of_calls = calls.values_mut().map(|call| &mut call.call);
        let of_batches = batches.values_mut().map(|batch| &mut batch.born);
        let of_schedules = schedules.values_mut().flatten();
        let of_schedules = of_schedules.flat_map(PossibleSchedule::operations);
        let of_ticks = lost_ticks.iter_mut().map(|lost| &mut lost.call);
        let of_ticks = of_schedules.chain(of_ticks);
        of_jobs.chain(of_calls).chain(of_batches).chain(of_ticks).collect()
    }

    /// Sorts the receipts by their content. Returns the new index of each receipt.
    fn sort_receipts(&mut self) -> Vec<usize> {
        let content = |at: &usize| format!("{:?}", self.observed[*at].receipt);
        let new = new_indexes(self.observed.len(), content);
        self.observed = sorted(std::mem::take(&mut self.observed), &new);
        let states = self.jobs.iter_mut().flat_map(|job| &mut job.possible_states);
        states
            .filter_map(PossibleState::receipt)
            .chain(self.observed.iter_mut().filter_map(|it| it.lease.receipt.as_mut()))
            .for_each(|receipt| *receipt = new[*receipt]);
        new
    }

    /// Sorts the jobs by their payloads, and the possible states of each job.
    fn sort_jobs(&mut self) {
        let payload = |at: &usize| self.jobs[*at].spec.payload.clone();
        let new = new_indexes(self.jobs.len(), payload);
        self.jobs = sorted(std::mem::take(&mut self.jobs), &new);
        for job in &mut self.jobs {
            job.leaders.iter_mut().for_each(|leader| *leader = new[*leader]);
            for possible in &mut job.possible_states {
                if let JobLocation::Ready(ReadyPosition::Released { leader, .. }) =
                    &mut possible.location
                {
                    *leader = new[*leader];
                }
            }
            job.possible_states.sort_by_cached_key(|state| format!("{state:?}"));
        }
        self.observed.iter_mut().for_each(|lease| lease.job = new[lease.job]);
        let batches = self.batches.values_mut();
        batches
            .flat_map(|batch| &mut batch.possible_states)
            .for_each(|state| state.completion = new[state.completion]);
    }
}

impl Job {
    fn operations(&mut self) -> Vec<&mut u32> {
        let of_states = self.possible_states.iter_mut().map(|it| &mut it.location);
        let of_states = of_states.flat_map(JobLocation::operations);
        std::iter::once(&mut self.call).chain(of_states).collect()
    }
}

impl JobLocation {
    fn operations(&mut self) -> Vec<&mut u32> {
        match self {
            Self::Ready(ReadyPosition::Front { back, claim, .. }) => {
                vec![&mut back.0, claim]
            }
            Self::Ready(ReadyPosition::Back { from, to, .. }) => {
                vec![&mut from.0, &mut to.0]
            }
            Self::Ready(ReadyPosition::Released { step, .. }) => vec![step],
            Self::Leased(lease) | Self::Moved(lease) => vec![&mut lease.claim],
            _ => Vec::new(),
        }
    }
}

impl PossibleState {
    fn receipt(&mut self) -> Option<&mut usize> {
        match &mut self.location {
            JobLocation::Leased(Lease { receipt, .. })
            | JobLocation::Moved(Lease { receipt, .. }) => receipt.as_mut(),
            JobLocation::Gone { end: End::Cancelled(Some((receipt, _))), .. } => {
                Some(receipt)
            }
            _ => None,
        }
    }
}

/// Returns the index that each of `len` items gets when they are sorted by `key`.
fn new_indexes<K: Ord>(len: usize, key: impl FnMut(&usize) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by_cached_key(key);
    let mut new = vec![0; len];
    order.into_iter().enumerate().for_each(|(to, from)| new[from] = to);
    new
}

fn sorted<T>(items: Vec<T>, new: &[usize]) -> Vec<T> {
    let by_index: BTreeMap<usize, T> = new.iter().copied().zip(items).collect();
    by_index.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relq_core::{
        Delivery, JobId, Receipt,
        outcome::{Pushed, Settled},
    };

    use crate::spec::{
        class::everything,
        recorded::{Judge, RecordedCall, Reply},
    };

    /// A call with its number of earlier payloads and its reply.
    type Call = (&'static str, usize, Reply);

    const PUSH_1: (&str, usize) = ("p push j", 0);
    const PUSH_2: (&str, usize) = ("p push j", 1);

    fn pushed((operation, payloads): (&'static str, usize)) -> Call {
        let id = JobId::new(format!("id-{}", payloads + 1)).unwrap();
        (operation, payloads, Reply::Pushed(Ok(vec![Pushed::Stored(id)])))
    }

    fn claimed(operation: &'static str, number: usize) -> Call {
        let id = JobId::new(format!("id-{number}")).unwrap();
        let receipt = Receipt::new(id, 1, format!("lease of {number}"));
        let payload = format!("job {number}");
        let delivery = Delivery::new(receipt, payload, Duration::from_secs(3));
        (operation, 0, Reply::Claimed(Ok(vec![delivery])))
    }

    fn settled(operation: &'static str) -> Call {
        (operation, 0, Reply::Settled(Ok(vec![Settled::Applied])))
    }

    async fn fingerprint(calls: &[Call]) -> String {
        let mut judge = Judge::new(&everything());
        for (operation, payloads, reply) in calls {
            let operation = operation.parse().unwrap();
            let call = RecordedCall::alone(operation, *payloads, vec![reply.clone()]);
            judge.call(&call).await.unwrap();
        }
        judge.fingerprint()
    }

    #[tokio::test]
    async fn calls_that_do_not_affect_each_other_may_change_their_order() {
        let begin = [pushed(PUSH_1), pushed(PUSH_2)];
        let claims = [claimed("a claim 1 l0", 1), claimed("b claim 1 l0", 2)];
        let begin = [begin, claims].concat();
        let ends = [settled("a settle 0D"), settled("b settle 0D")];
        let swapped = [ends[1].clone(), ends[0].clone()];

        let in_order = fingerprint(&[&begin[..], &ends].concat()).await;
        let in_other = fingerprint(&[&begin[..], &swapped].concat()).await;

        assert_eq!(in_order, in_other);
    }

    #[tokio::test]
    async fn the_order_of_two_ready_jobs_is_part_of_it() {
        let in_order = fingerprint(&[pushed(PUSH_1), pushed(PUSH_2)]).await;
        let in_other = fingerprint(&[pushed(PUSH_2), pushed(PUSH_1)]).await;

        assert_ne!(in_order, in_other);
    }
}
