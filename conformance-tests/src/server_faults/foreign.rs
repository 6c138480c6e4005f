//! Keys of another type where the queue's should be.

use std::time::Duration;

use queue_core::{Error, NewJob, Queue, Settlement, Verdict};

use super::stage::{
    Stage, ask, eventually, fill, is_sound, many, push_plain, token, with_options,
    worker_id,
};
use crate::{room::strings, server::Server};

/// R19, R21: a foreign key in the way is a clear error, and changes nothing: once it is
/// away, every job that was there is delivered.
pub(super) async fn a_foreign_key_in_the_way_is_an_error_and_loses_nothing(
    stage: &Stage,
) {
    let keys = keys_in_use(stage).await;
    assert!(keys.len() >= 5, "only {keys:?}");
    let mut judged = 0;
    for key in keys {
        judged += usize::from(is_told(stage, &key).await);
    }
    assert!(judged >= 5, "only {judged} keys could be judged");
}

/// The keys that a queue has for its structures, without those that hold a job.
async fn keys_in_use(stage: &Stage) -> Vec<String> {
    let server = Server::start();
    fill(&*stage.connect(&server).await).await;
    let part = format!("{{{}}}:", stage.queue);
    let keys = keys(&server).into_iter();
    keys.filter(|key| key.starts_with(&part)).collect()
}

/// Answers whether the key could be put in the way: not where it is in use, so that to
/// take it away is to take jobs away. A doorbell's token stands for no job.
async fn is_told(stage: &Stage, key: &str) -> bool {
    let server = Server::start();
    let queue = stage.connect(&server).await;
    push_plain(&*queue, &["x"]).await;
    if keys(&server).iter().any(|used| used == key) && !key.ends_with(":wake") {
        return false;
    }
    server.command(&[b"SET", key.as_bytes(), b"foreign"]);

    let errors = errors(&*queue).await;

    for error in &errors {
        assert!(names_it(error), "{key}: {}", error.full_message());
    }
    assert!(!errors.is_empty(), "nobody minds {key}");
    server.command(&[b"DEL", key.as_bytes()]);
    queue.leave(&worker_id()).await.expect("answered");
    eventually(&format!("the job behind {key}"), async || {
        let found = queue.claim(&ask(9)).await.expect("claimed");
        found.iter().any(|one| one.payload == "x")
    })
    .await;
    is_sound(&*queue).await;
    true
}

/// What is said while a key is in the way, by one call of each kind.
async fn errors(queue: &dyn Queue) -> Vec<Error> {
    let token = token(queue, "token");
    let pushed = queue.push(&with_options(queue), token.as_ref()).await;
    let plain = queue.push(&[NewJob::new("y")], None).await;
    let claimed = queue.claim(&ask(1)).await;
    let again = || Verdict::Retry { after: Duration::ZERO, error: "again".into() };
    let held = claimed.iter().flatten().map(|one| one.receipt.clone());
    let back: Vec<_> = held.map(|held| Settlement::new(held, again())).collect();
    let settled = queue.settle(&back).await;
    let recovered = queue.recover(many(10)).await;
    let stats = queue.stats().await;
    let errors = [pushed.err(), plain.err(), claimed.err(), settled.err()];
    errors.into_iter().chain([recovered.err(), stats.err()]).flatten().collect()
}

/// Whether it says that the store cannot be used, be it of one part of a call whose
/// other parts were carried out.
fn names_it(error: &Error) -> bool {
    let part = std::error::Error::source(error);
    let part = part.and_then(|part| part.downcast_ref::<Error>());
    [Some(error), part]
        .into_iter()
        .flatten()
        .any(|error| matches!(error, Error::Unusable { .. }))
}

fn keys(server: &Server) -> Vec<String> {
    let keys = strings(&server.command(&[b"KEYS", b"*"]));
    keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
}
