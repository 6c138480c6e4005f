//! Which of several queues is claimed from first, so that each gets an equal share.

use std::sync::atomic::{AtomicU64, Ordering};

/// Every eighth claim that is sent together with settlements goes to the next queue in
/// turn. The others go to the queue of these settlements, which saves a round trip.
const STAYS: u64 = 8;

/// Gives each of several queues the first turn equally often.
///
/// A claim that takes all its jobs from the first queue of its turn costs one command,
/// however many queues there are. Over many claims, each queue that has jobs then
/// serves an equal share of them.
///
/// ```
/// use relq_partitions::FairTurn;
///
/// let turn = FairTurn::starting_at(2, 3);
/// assert_eq!(turn.order().collect::<Vec<_>>(), [2, 0, 1]);
/// assert_eq!(turn.order().collect::<Vec<_>>(), [0, 1, 2]);
/// ```
#[derive(Debug)]
pub struct FairTurn {
    queues: usize,
    turns: AtomicU64,
    stays: AtomicU64,
}

impl FairTurn {
    /// Creates the turns of this number of `queues`, at least one, of which `first` has the
    /// first turn. Programs that start at a random queue spread their first claims.
    pub fn starting_at(first: usize, queues: usize) -> Self {
        let queues = queues.max(1);
        let turns = AtomicU64::new((first % queues) as u64);
        Self { queues, turns, stays: AtomicU64::new(0) }
    }

    /// Returns the queue whose turn it is. The next call returns the next queue.
    pub fn next(&self) -> usize {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        usize::try_from(turn % self.queues as u64).unwrap_or(0)
    }

    /// Returns all queues, the one whose turn it is first.
    pub fn order(&self) -> impl Iterator<Item = usize> + use<> {
        Self::beginning_at(self.next(), self.queues)
    }

    /// Returns the queue to claim from together with settlements, most of which are for
    /// the queue `largest`. The claim stays there, which saves a round trip, but one
    /// call in eight goes to the next queue in turn, so that no queue starves.
    pub fn next_after_settling(&self, largest: usize) -> usize {
        let stays = self.stays.fetch_add(1, Ordering::Relaxed);
        if stays % STAYS == STAYS - 1 { self.next() } else { largest }
    }

    /// Returns the numbers of all queues, beginning at `first`. Queue 0 follows the last.
    pub(crate) fn beginning_at(
        first: usize,
        queues: usize,
    ) -> impl Iterator<Item = usize> {
        (0..queues).map(move |step| (first + step) % queues)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_the_first_turn_equally_often() {
        let turn = FairTurn::starting_at(1, 3);
        let mut first = [0; 3];

        (0..300).for_each(|_| first[turn.next()] += 1);

        assert_eq!(first, [100; 3]);
    }

    #[test]
    fn one_settlement_in_eight_moves_on() {
        let turn = FairTurn::starting_at(1, 3);
        let places: Vec<_> = (0..16).map(|_| turn.next_after_settling(0)).collect();

        assert_eq!(places, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
    }
}
