//! Makes every kind of call that restores jobs.

use relq_core::{
    JobId, Priority,
    capabilities::Capability,
    environment::Timestamp,
    operator::{JobView, Selection, StateDetail},
    unique::UniqueKey,
};

use super::super::{fixture::job_id, tape::Tape};

/// Restores jobs in all states with side records, and purges what is left of them.
pub(super) async fn play(tape: &mut Tape<'_>) {
    let can = tape.queue.capabilities().clone();
    let at = Timestamp::from_unix_ms(1_000);
    let died = StateDetail::Dead { reason: "it failed".to_owned(), since: at };
    let mut ready = view("restored", StateDetail::Ready);
    ready.unique = Some(UniqueKey::new("restored").expect("a valid key"));
    ready.last_error = Some("it failed once".to_owned());
    let mut urgent = view("restored urgent", StateDetail::Ready);
    urgent.priority = *can.priorities.end();
    let mut dead = view("restored dead", died);
    if can.supports(Capability::Results) {
        dead.keep_result = Some(super::LEASE);
    }
    let scheduled = view("restored later", StateDetail::Scheduled { due: at });
    let restorer = tape.queue.restore_queue().expect("it was asked");
    restorer.restore(&[ready, urgent, dead, scheduled]).await.expect("restored");
    tape.mark("restore").await;
    let redriven = tape.queue.redrive(&Selection::All).await.expect("redriven");
    assert!(redriven.moved > 0, "the restored job is dead");
    tape.mark("redrive of a restored job").await;
    tape.queue.purge().await.expect("purged");
    tape.mark("purge of restored jobs").await;
}

fn view(name: &str, detail: StateDetail) -> JobView {
    let id: JobId = job_id(name);
    let mut view = JobView::new(Some(id), name.to_owned(), detail);
    (view.attempt, view.priority) = (1, Priority::NORMAL);
    view
}
