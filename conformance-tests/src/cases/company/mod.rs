//! Calls of several callers at the same moment. A backend may send them in one command,
//! commit them together, or wake one caller for another. Each caller's answer must be
//! true for its own jobs all the same (R4, R5, R7, R21).

mod pushes;
mod settlements;
mod waiters;

use std::{
    future::{Future, poll_fn, ready},
    task::Poll,
};

use crate::proxy::{Fault, When};

/// Makes all calls at the same moment: each is polled once before any of them goes on, in
/// a task of its own. Returns their answers, in order.
async fn at_once<T: Send + 'static>(
    calls: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let mut calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
    let begun: Vec<_> = poll_fn(|context| {
        Poll::Ready(calls.iter_mut().map(|call| call.as_mut().poll(context)).collect())
    })
    .await;
    let running: Vec<_> = begun
        .into_iter()
        .zip(calls)
        .map(|(begun, call)| match begun {
            Poll::Ready(answer) => tokio::spawn(ready(answer)),
            Poll::Pending => tokio::spawn(call),
        })
        .collect();
    let mut answers = Vec::new();
    for call in running {
        answers.push(call.await.expect("a call ends"));
    }
    answers
}

/// The faults of one command that leave its client alive.
fn survivable_faults() -> [Fault; 4] {
    [
        Fault::Cut(When::Before),
        Fault::Cut(When::After),
        Fault::Error("LOADING the suite says so".to_owned()),
        Fault::Error("OOM the suite says so".to_owned()),
    ]
}
