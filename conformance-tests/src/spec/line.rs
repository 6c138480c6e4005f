//! The order in which a test case expects its ready jobs to be delivered. It depends on
//! the order that the backend declares.

use bytes::Bytes;
use relq_core::NewJob;

use crate::{
    harness::checks::counts,
    spec::{
        class::Class,
        ready_order::{Ready, ReadyPosition},
    },
};

/// The ready jobs of a case. Each has a different payload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<(Bytes, Ready)>);

impl Line {
    /// Makes the expected order of jobs that were pushed in this order and never
    /// delivered.
    pub(crate) fn of<J: Into<NewJob>>(jobs: impl IntoIterator<Item = J>) -> Self {
        Self::default().and(jobs, |index| ReadyPosition::fresh((0, index)))
    }

    /// Adds jobs that became ready again together. An earlier claim had leased them in
    /// this order, while the jobs that were added before were already ready.
    pub(crate) fn and_back<J: Into<NewJob>>(
        self,
        class: &Class,
        jobs: impl IntoIterator<Item = J>,
    ) -> Self {
        self.and(jobs, |index| class.back((1, index), 0, (2, 0)))
    }

    /// Adds jobs that became ready one after the other, after all jobs that were added
    /// before.
    pub(crate) fn and_then<J: Into<NewJob>>(
        self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Self {
        self.and(jobs, |index| {
            let at = (3, index);
            ReadyPosition::Back { from: at, to: at, due: Some(0) }
        })
    }

    fn and<J: Into<NewJob>>(
        mut self,
        jobs: impl IntoIterator<Item = J>,
        position: impl Fn(usize) -> ReadyPosition,
    ) -> Self {
        let jobs = jobs.into_iter().map(Into::into).enumerate();
        self.0.extend(jobs.map(|(index, job)| {
            let (priority, position) = (job.priority, position(index));
            (job.payload, Ready { priority, position, batch: None })
        }));
        self
    }

    /// Checks that each job was delivered once, and none before a job that must precede
    /// it.
    ///
    /// # Errors
    /// The first job that was delivered in the wrong order, or the wrong counts.
    pub(crate) fn judge(&self, class: &Class, served: &[Bytes]) -> Result<(), String> {
        let wanted = self.0.iter().map(|(payload, _)| payload);
        let differences = counts(served.iter(), wanted);
        if !differences.is_empty() {
            return Err(format!("too many (+) or missing (-): {differences:?}"));
        }
        let ready: Vec<_> = served.iter().map(|one| self.ready(one)).collect();
        for (at, late) in ready.iter().enumerate() {
            let mut earlier = ready[..at].iter();
            if let Some(early) = earlier.position(|early| class.is_first(late, early)) {
                return Err(format!(
                    "{} is served before {}: {served:?}",
                    served[early].escape_ascii(),
                    served[at].escape_ascii(),
                ));
            }
        }
        Ok(())
    }

    fn ready(&self, payload: &Bytes) -> Ready {
        let place = self.0.iter().find(|(known, _)| known == payload);
        place.expect("each delivered job is in the line").1
    }
}

#[cfg(test)]
mod tests {
    use relq_core::{Priority, capabilities::Order};

    use super::*;
    use crate::spec::class::declared;

    fn is_kept(order: Order, line: impl Fn(&Class) -> Line, served: &[&str]) -> bool {
        let class = declared(|can| {
            can.order = order;
            can.priorities = Priority::NORMAL..=Priority::HIGHEST;
        });
        let served: Vec<_> =
            served.iter().map(|one| Bytes::copy_from_slice(one.as_bytes())).collect();
        line(&class).judge(&class, &served).is_ok()
    }

    fn fresh(_: &Class) -> Line {
        Line::of(["a", "b", "c"])
    }

    /// Four ready jobs, of which `a` was claimed first and has become ready again.
    fn a_is_back(class: &Class) -> Line {
        Line::of(["b", "c"]).and_back(class, ["a"]).and_then(["d"])
    }

    fn ranked(_: &Class) -> Line {
        let urgent = |name: &'static str| NewJob::new(name).priority(Priority::HIGHEST);
        Line::of([NewJob::new("l"), urgent("h1"), urgent("h2")])
    }

    #[test]
    fn first_deliveries_go_by_their_pushes() {
        let wrong = ["b", "a", "c"];

        assert!(!is_kept(Order::Fifo, fresh, &wrong));
        assert!(!is_kept(Order::Rotating, fresh, &wrong));
        assert!(is_kept(Order::Unordered, fresh, &wrong));
        assert!(is_kept(Order::Rotating, fresh, &["a", "b", "c"]));
    }

    #[test]
    fn a_returned_job_is_first_or_waits_its_turn() {
        let (first, in_turn) = (["a", "b", "c", "d"], ["b", "c", "a", "d"]);

        assert!(is_kept(Order::Fifo, a_is_back, &first));
        assert!(!is_kept(Order::Fifo, a_is_back, &in_turn));
        assert!(is_kept(Order::Rotating, a_is_back, &in_turn));
        assert!(!is_kept(Order::Rotating, a_is_back, &first));
    }

    #[test]
    fn a_turn_is_no_longer_than_the_ring() {
        let never = ["b", "c", "d", "a"];

        assert!(!is_kept(Order::Rotating, a_is_back, &never));
        assert!(is_kept(Order::Unordered, a_is_back, &never));
    }

    #[test]
    fn the_upper_levels_of_a_ring_are_last_in_first_out() {
        assert!(is_kept(Order::Fifo, ranked, &["h1", "h2", "l"]));
        assert!(is_kept(Order::Rotating, ranked, &["h2", "h1", "l"]));
        assert!(!is_kept(Order::Rotating, ranked, &["h1", "h2", "l"]));
        assert!(!is_kept(Order::Rotating, ranked, &["h2", "l", "h1"]));
    }

    #[test]
    fn each_is_served_once_in_any_order() {
        assert!(!is_kept(Order::Unordered, fresh, &["a", "b"]));
        assert!(!is_kept(Order::Unordered, fresh, &["a", "b", "c", "c"]));
        assert!(!is_kept(Order::Unordered, fresh, &["a", "b", "c", "x"]));
    }
}
