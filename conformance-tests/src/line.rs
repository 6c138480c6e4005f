//! Jobs that are ready, and how they came to be: in which order they are to be served.

use bytes::Bytes;
use queue_core::NewJob;

use crate::{
    checks::counts,
    class::Class,
    turn::{Ready, Turn},
};

/// The ready jobs of a case, each of another payload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<(Bytes, Ready)>);

impl Line {
    /// Jobs that were never delivered, in the order of their pushes.
    pub(crate) fn of<J: Into<NewJob>>(jobs: impl IntoIterator<Item = J>) -> Self {
        Self::default().and(jobs, |index| Turn::fresh((0, index)))
    }

    /// And jobs that were claimed in that order, when the former were ready already,
    /// and that came back together.
    pub(crate) fn and_back<J: Into<NewJob>>(
        self,
        class: &Class,
        jobs: impl IntoIterator<Item = J>,
    ) -> Self {
        self.and(jobs, |index| class.back((1, index), 0, (2, 0)))
    }

    /// And jobs that became ready after all of these, one after the other.
    pub(crate) fn and_then<J: Into<NewJob>>(
        self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Self {
        self.and(jobs, |index| {
            let at = (3, index);
            Turn::Back { from: at, to: at, due: Some(0) }
        })
    }

    fn and<J: Into<NewJob>>(
        mut self,
        jobs: impl IntoIterator<Item = J>,
        turn: impl Fn(usize) -> Turn,
    ) -> Self {
        let jobs = jobs.into_iter().map(Into::into).enumerate();
        self.0.extend(jobs.map(|(index, job)| {
            (job.payload, Ready { priority: job.priority, turn: turn(index) })
        }));
        self
    }

    /// Each was served once, and none before one that has to be served first.
    ///
    /// # Errors
    /// Which was served wrongly.
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
        place.expect("what was served is in the line").1
    }
}
