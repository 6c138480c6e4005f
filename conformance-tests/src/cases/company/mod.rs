//! Calls that several callers make at the same moment. A backend may send such calls in
//! one command, commit them together, or pass a notification from one caller to
//! another. Each caller's result must still be true for its own jobs (R4, R5, R7, R21).

mod pushes;
mod settlements;
mod waiters;

use std::{
    future::{Future, poll_fn, ready},
    task::Poll,
};

use crate::proxy::{Fault, When};

/// Runs all calls at the same moment, each in a task of its own: each call has been
/// polled once before one is polled a second time. Returns their results, in the order
/// of the calls.
pub(in crate::cases) async fn at_once<T: Send + 'static>(
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

/// Returns the faults that can hit a command without ending the client that sent it.
fn survivable_faults() -> [Fault; 4] {
    [
        Fault::Cut(When::Before),
        Fault::Cut(When::After),
        Fault::Error("LOADING the suite says so".to_owned()),
        Fault::Error("OOM the suite says so".to_owned()),
    ]
}
