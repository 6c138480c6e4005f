//! Makes every kind of call that holds, releases or cancels followers.

use std::sync::Arc;

use relq_core::{Disposition, NewJob, operator::Selection};

use super::{
    super::{
        fixture::{LEASE, job_id},
        tape::Tape,
    },
    say,
};

/// A job that others can follow.
fn named(name: &'static str) -> NewJob {
    NewJob::new(name).id(job_id(name))
}

fn following(leader: &str, payload: &'static str) -> NewJob {
    NewJob::new(payload).after(job_id(leader))
}

pub(super) async fn play(tape: &mut Tape<'_>) {
    released(tape).await;
    cancelled(tape).await;
    buried(tape).await;
    let held = [named("last leader"), following("last leader", "last follower")];
    tape.queue.push(&held, None).await.expect("pushed");
    tape.mark("push of the last follower").await;
    tape.queue.purge().await.expect("purged");
    tape.mark("purge of held jobs").await;
}

/// Pushes followers, and releases them.
async fn released(tape: &mut Tape<'_>) {
    tape.queue.push(&[named("leader")], None).await.expect("pushed");
    tape.mark("push of a leader").await;
    let followers = [
        following("leader", "first"),
        following("leader", "delayed").delay(LEASE),
        following("leader", "second"),
        following("leader", "third").id(job_id("third")),
        following("third", "fourth"),
    ];
    tape.queue.push(&followers, None).await.expect("pushed");
    tape.mark("push of followers").await;
    let leader = tape.claim(1).await.remove(0);
    tape.settle(&[say(&leader.receipt, Disposition::Done)]).await;
    let held = tape.claim(3).await;
    let done: Vec<_> =
        held.iter().map(|one| say(&one.receipt, Disposition::Done)).collect();
    tape.settle(&done).await;
    tape.queue.push(&[following("leader", "late")], None).await.expect("pushed");
    tape.mark("push after a done job").await;
    tape.queue.purge().await.expect("purged");
    tape.mark("purge of released jobs").await;
}

/// Ends leaders in ways that cancel their followers.
async fn cancelled(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    let jobs = [
        named("discarded"),
        named("cancelled"),
        named("waits"),
        following("discarded", "of the discarded"),
        following("cancelled", "link").id(job_id("link")),
        following("link", "of the link"),
        following("waits", "of a waiting job"),
        following("waits", "itself").id(job_id("itself")),
    ];
    queue.push(&jobs, None).await.expect("pushed");
    tape.mark("push of leaders and followers").await;
    let held = tape.claim(2).await;
    tape.settle(&[say(&held[0].receipt, Disposition::Discard)]).await;
    for id in ["cancelled", "itself", "waits"] {
        queue.cancel(&job_id(id)).await.expect("answered");
        tape.mark("cancel of a leader or follower").await;
    }
}

/// Buries a leader, redrives it, and purges it from the dead.
async fn buried(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    let jobs = [named("dead leader"), following("dead leader", "of the dead")];
    queue.push(&jobs, None).await.expect("pushed");
    tape.mark("push of a job that dies").await;
    for _ in 0..2 {
        queue.redrive(&Selection::All).await.expect("redriven");
        tape.mark("redrive of a leader").await;
        let held = tape.claim(1).await.remove(0);
        let dead = Disposition::Dead { error: "never".into() };
        tape.settle(&[say(&held.receipt, dead)]).await;
    }
    queue.purge_dead(&Selection::All).await.expect("purged");
    tape.mark("purge of a dead leader").await;
}
