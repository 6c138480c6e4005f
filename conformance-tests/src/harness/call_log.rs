//! The calls of a store's actors, so that the message about a call that hangs can name
//! the call and its job.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many of the calls that ended a message names. The last push is usually among
/// them, and it names the jobs that a hanging claim should have got.
const ENDED: usize = 6;

/// The calls of all actors of a store: those in progress, and the last that ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallLog(Arc<Mutex<Calls>>);

#[derive(Debug, Default)]
struct Calls {
    begun: u64,
    open: BTreeMap<u64, String>,
    ended: VecDeque<String>,
}

impl CallLog {
    /// Makes the call `call`, which the log describes as `what`.
    pub(crate) async fn note<T>(
        &self,
        what: String,
        call: impl Future<Output = T>,
    ) -> T {
        let open = self.begin(what);
        let answer = call.await;
        open.log.end(open.number, "");
        answer
    }

    /// The calls in progress, as text for a message.
    pub(crate) fn in_progress(&self) -> String {
        format!("calls in progress: {}", listed(self.calls().open.values()))
    }

    /// The last calls that ended, as text for a message.
    pub(crate) fn ended(&self) -> String {
        format!("the last calls: {}", listed(&self.calls().ended))
    }

    fn begin(&self, what: String) -> OpenCall<'_> {
        let mut calls = self.calls();
        calls.begun += 1;
        let number = calls.begun;
        calls.open.insert(number, what);
        OpenCall { log: self, number }
    }

    fn end(&self, number: u64, remark: &str) {
        let mut calls = self.calls();
        let Some(what) = calls.open.remove(&number) else { return };
        calls.ended.push_back(what + remark);
        if calls.ended.len() > ENDED {
            calls.ended.pop_front();
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls that did not end and the last that did, as text for a message.
impl fmt::Display for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, after {}", self.in_progress(), self.ended())
    }
}

fn listed<'a>(calls: impl IntoIterator<Item = &'a String>) -> String {
    let calls: Vec<_> = calls.into_iter().map(String::as_str).collect();
    if calls.is_empty() { "none".to_owned() } else { calls.join("; ") }
}

/// A call in progress. The caller may drop it before it ends.
struct OpenCall<'a> {
    log: &'a CallLog,
    number: u64,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.log.end(self.number, " (dropped)");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        task::{Context, Waker},
    };

    use super::*;

    #[tokio::test]
    async fn a_call_in_progress_is_named_apart_from_those_that_ended() {
        let log = CallLog::default();
        log.note("p pushes `a`".to_owned(), ready(())).await;
        drop(log.begin("w claims".to_owned()));
        let mut open =
            Box::pin(log.note("v cancels job a".to_owned(), pending::<()>()));

        let polled = open.as_mut().poll(&mut Context::from_waker(Waker::noop()));

        assert!(polled.is_pending());

        assert_eq!(
            log.to_string(),
            "calls in progress: v cancels job a, after the last calls: p pushes `a`; w \
             claims (dropped)"
        );
    }
}
