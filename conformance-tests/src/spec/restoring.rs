//! The jobs that an operation restores (R34), and the reference model's record of them.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    JobId, NewJob,
    environment::Timestamp,
    operator::{JobView, StateDetail},
    unique::OnDuplicate,
};

use super::{
    class::Class,
    draft,
    last_error::LastError,
    operation::{RestoreDraft, RestoredAs},
    possible_state::{JobLocation, Ms, PossibleState},
    pushing::ms,
    ready_order::ReadyPosition,
};

/// The text that serves as the last error of each restored job, and as the reason why it
/// is dead.
const ERROR: &str = "it failed elsewhere";

/// The earlier life of a restored job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    state: RestoredAs,
    attempt: u32,
    /// The due time of a scheduled job.
    due: Ms,
    expires: Option<Ms>,
}

/// A job to restore.
#[derive(Debug)]
pub(crate) struct Restored {
    /// The job as one to push, without its times.
    pub(crate) spec: NewJob,
    pub(crate) past: Past,
}

impl Restored {
    /// The job that a draft describes, with its times counted from `now`. It always has an
    /// id, which is made of its payload if the draft has none.
    pub(crate) fn new(
        draft: &RestoreDraft,
        payload: String,
        class: &Class,
        now: Ms,
    ) -> Self {
        let id = JobId::new(payload.replace(' ', "-")).expect("a valid id");
        let mut spec = draft::ticked(&draft.job, payload, class);
        spec.id.get_or_insert(id);
        // A listed job does not say what its push would have done about another holder of
        // its key, so a restore leaves the holder as it is.
        if let Some(unique) = &mut spec.unique {
            unique.on_duplicate = OnDuplicate::Keep;
        }
        let delay = std::mem::take(&mut spec.delay);
        let expires = spec.expires_in.take().map(|after| now + ms(after));
        let most = u32::from(spec.max_attempts.get());
        let (state, attempt) = match draft.state {
            RestoredAs::Dead => (RestoredAs::Dead, u32::from(draft.attempt).min(most)),
            state => (state, u32::from(draft.attempt).min(most - 1)),
        };
        let past = Past { state, attempt, due: now + ms(delay), expires };
        Self { spec, past }
    }

    /// The job as an operator restores it. `at` is the store's time of a moment.
    pub(crate) fn view(&self, at: impl Fn(Ms) -> Timestamp) -> JobView {
        let (spec, past) = (&self.spec, self.past);
        let detail = match past.state {
            RestoredAs::Ready => StateDetail::Ready,
            RestoredAs::Scheduled => StateDetail::Scheduled { due: at(past.due) },
            RestoredAs::Dead => {
                StateDetail::Dead { reason: ERROR.to_owned(), since: at(0) }
            }
        };
        let mut view = JobView::new(spec.id.clone(), spec.payload.clone(), detail);
        view.attempt = past.attempt;
        view.max_attempts = spec.max_attempts;
        view.priority = spec.priority;
        view.unique = spec.unique.as_ref().map(|unique| unique.key.clone());
        view.expires_at = past.expires.map(&at);
        view.enqueued_at = Some(at(0));
        view.headers = spec.headers.clone();
        view.last_error = NonZeroU32::new(past.attempt).map(|_| ERROR.to_owned());
        view.lease = spec.lease;
        view.keep_result = spec.keep_result;
        view
    }
}

impl Past {
    pub(crate) fn is_dead(self) -> bool {
        self.state == RestoredAs::Dead
    }

    /// The state in which the job is stored now. `absent` is that of a job that is not
    /// stored.
    pub(crate) fn stored(
        self,
        absent: PossibleState,
        position: ReadyPosition,
    ) -> PossibleState {
        let location = match self.state {
            RestoredAs::Ready => JobLocation::Ready(position),
            RestoredAs::Scheduled => JobLocation::Scheduled { due: self.due },
            RestoredAs::Dead => JobLocation::Dead,
        };
        PossibleState {
            attempt: self.attempt,
            expires: self.expires,
            last_error: LastError::reported(if self.attempt > 0 { ERROR } else { "" }),
            ..absent.at(location)
        }
    }
}

/// The time of the store's clock that many milliseconds after `start`.
pub(crate) fn after(start: Timestamp, since_start: Ms) -> Timestamp {
    start.plus(Duration::from_millis(since_start))
}
