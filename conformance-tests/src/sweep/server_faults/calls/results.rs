//! Makes every kind of call that changes what is told of a job.

use std::{sync::Arc, time::Duration};

use relq_core::{
    Delivery, Disposition, NewJob, Queue, operator::Selection, results::ResultQueue,
};

use super::{
    super::{
        fixture::{eventually, job_id, kept_ids, many},
        tape::Tape,
    },
    say,
};

/// How long results are kept that do not end during a test.
const KEPT: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn play(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    let kept = kept_ids().into_iter().zip(["1", "2", "3", "4", "5"]);
    let kept = kept.map(|(id, name)| NewJob::new(name).id(id).keep_result(KEPT));
    queue.push(&kept.collect::<Vec<_>>(), None).await.expect("pushed");
    tape.mark("push of kept results").await;
    let held = tape.claim(5).await;
    let reported = results(&*queue).report_progress(&held[0].receipt, b"half").await;
    reported.expect("reported");
    tape.mark("report progress").await;
    end_each(tape, &held).await;
    queue
        .redrive(&Selection::Only(vec![held[3].job().clone()]))
        .await
        .expect("redriven");
    tape.mark("redrive of a kept job").await;
    let again = tape.claim(1).await.remove(0);
    tape.settle(&[say(&again.receipt, Disposition::Dead { error: "no".into() })]).await;
    queue.purge_dead(&Selection::All).await.expect("purged");
    tape.mark("purge_dead of a kept job").await;
    forgotten(tape).await;
    queue.purge().await.expect("purged");
    tape.mark("purge of kept results").await;
}

async fn end_each(tape: &mut Tape<'_>, held: &[Delivery]) {
    let with = |text: &'static str| Disposition::DoneWith { result: text.into() };
    let [first, second, third, fourth, fifth] = held else {
        panic!("five jobs are ready");
    };
    tape.settle(&[say(&first.receipt, with("one")), say(&second.receipt, with("two"))])
        .await;
    tape.settle(&[say(&third.receipt, Disposition::Discard)]).await;
    tape.settle(&[say(&fourth.receipt, Disposition::Dead { error: "no".into() })])
        .await;
    tape.queue.cancel(fifth.job()).await.expect("answered");
    tape.mark("cancel of a kept job").await;
}

/// Ends a job whose result is kept for a moment, and recovers when it is over.
async fn forgotten(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    let id = job_id("forgotten");
    let brief = NewJob::new("brief").id(id.clone());
    let brief = brief.keep_result(Duration::from_millis(1));
    queue.push(&[brief], None).await.expect("pushed");
    tape.mark("push of a result for a moment").await;
    let held = tape.claim(1).await.remove(0);
    tape.settle(&[say(&held.receipt, Disposition::Done)]).await;
    eventually("the end of a result", async || {
        let told = results(&*queue).read_results(std::slice::from_ref(&id)).await;
        told.expect("read") == [None]
    })
    .await;
    queue.recover(many(100)).await.expect("recovered");
    tape.mark("recover of old results").await;
}

fn results(queue: &dyn Queue) -> &dyn ResultQueue {
    queue.result_queue().expect("the backend keeps results")
}
