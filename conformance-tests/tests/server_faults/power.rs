//! DURABLE: power cut after any write, with every write on the disk before it is
//! answered.

use std::{sync::Arc, time::Duration};

use queue_core::{
    Delivery, JobId, NewJob, Priority, PushToken, Queue, Receipt, Settlement,
    UniqueKey, Verdict, Which,
};

use super::{
    append_only_file::{Recorded, ends},
    stage::{LEASE, Places, ask, connect, eventually, places, push_plain, worker_id},
};

/// Where the writes end that a call answered for, and where the jobs were then.
struct Mark {
    call: &'static str,
    end: usize,
    places: Places,
    digest: Vec<u8>,
}

/// Makes calls, and notes what is so after each.
struct Tape {
    recorded: Recorded,
    queue: Arc<dyn Queue>,
    marks: Vec<Mark>,
}

impl Tape {
    async fn start() -> Self {
        let recorded = Recorded::start();
        let queue = connect(&recorded.server).await;
        let mut tape = Self { recorded, queue, marks: Vec::new() };
        tape.mark("connect").await;
        tape
    }

    async fn mark(&mut self, call: &'static str) {
        let places = places(&*self.queue).await;
        let digest = self.recorded.server.command(&[b"DEBUG", b"DIGEST"]);
        let end = self.recorded.writes().len();
        self.marks.push(Mark { call, end, places, digest });
    }

    async fn claim(&mut self, max: u32) -> Vec<Delivery> {
        let held = self.queue.claim(&ask(max)).await.unwrap();
        self.mark("claim").await;
        held
    }

    async fn settle(&mut self, done: &[Settlement]) {
        self.queue.settle(done).await.unwrap();
        self.mark("settle").await;
    }
}

/// Every kind of call that writes, once at least.
async fn play(tape: &mut Tape) {
    push(tape).await;
    let held = tape.claim(6).await;
    work(tape, &held).await;
    time_passes(tape).await;
    operate(tape).await;
}

async fn push(tape: &mut Tape) {
    push_plain(&*tape.queue, &["a", "b", "c", "d", "e", "f"]).await;
    tape.mark("push").await;
    let jobs = [
        NewJob::new("later").delay(LEASE),
        NewJob::new("soon").delay(Duration::from_millis(1)),
        NewJob::new("urgent").priority(Priority::HIGHEST).header("name", "value"),
        NewJob::new("unique").unique(UniqueKey::new("key").unwrap()),
        NewJob::new("mine").id(JobId::new("mine").unwrap()),
    ];
    let token = PushToken::new("token").unwrap();
    tape.queue.push(&jobs, Some(&token)).await.unwrap();
    tape.mark("push with a token").await;
}

async fn work(tape: &mut Tape, held: &[Delivery]) {
    let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();
    let [first, second, third, fourth, rest @ ..] = &receipts[..] else {
        panic!("six jobs are ready");
    };
    tape.settle(&[say(first, Verdict::Done)]).await;
    tape.settle(&[
        say(second, Verdict::Retry { after: LEASE, error: "again".into() }),
        say(third, Verdict::Dead { error: "never".into() }),
        say(fourth, Verdict::Discard),
    ])
    .await;
    tape.queue.extend(&worker_id(), rest, LEASE * 2).await.unwrap();
    tape.mark("extend").await;
    let turn = tape.queue.turn(&[say(&rest[0], Verdict::Done)], &ask(1)).await;
    assert!(turn.settled.is_ok() && turn.claimed.is_ok());
    tape.mark("turn").await;
    tape.queue.leave(&worker_id()).await.unwrap();
    tape.mark("leave").await;
}

/// A lease ends and is recovered; a job that was delayed becomes ready.
async fn time_passes(tape: &mut Tape) {
    let mut brief = ask(1);
    brief.lease = Duration::from_millis(1);
    tape.queue.claim(&brief).await.unwrap();
    tape.mark("a brief claim").await;
    let queue = Arc::clone(&tape.queue);
    eventually("the end of a lease", async || {
        queue.stats().await.unwrap().overdue == 1
    })
    .await;
    tape.queue.recover(100.try_into().unwrap()).await.unwrap();
    tape.mark("recover").await;
}

async fn operate(tape: &mut Tape) {
    tape.queue.redrive(&Which::All).await.unwrap();
    tape.mark("redrive").await;
    tape.queue.pause().await.unwrap();
    tape.mark("pause").await;
    tape.queue.resume().await.unwrap();
    tape.mark("resume").await;
    tape.queue.cancel(&JobId::new("mine").unwrap()).await.unwrap();
    tape.mark("cancel").await;
    let held = tape.claim(2).await;
    let dead = Verdict::Dead { error: "never".into() };
    let dead: Vec<_> = held.iter().map(|one| say(&one.receipt, dead.clone())).collect();
    tape.settle(&dead).await;
    tape.queue.purge_dead(&Which::All).await.unwrap();
    tape.mark("purge_dead").await;
    tape.queue.purge().await.unwrap();
    tape.mark("purge").await;
}

fn say(receipt: &Receipt, verdict: Verdict) -> Settlement {
    Settlement::new(receipt.clone(), verdict)
}

/// R1, R5: whatever prefix of the writes is left, all that was answered is there, and
/// each job is where it was before or after the call under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_aof_prefix() {
    let mut tape = Tape::start().await;
    play(&mut tape).await;
    let writes = tape.recorded.writes();

    let cuts = ends(&writes);
    assert!(cuts.len() > 50, "only {} writes were recorded", cuts.len());
    for cut in cuts {
        let after = tape.recorded.after_cut(&writes[..cut]);
        let found = places(&*connect(&after.server).await).await;
        judge(&tape.marks, cut, &found, &after);
    }
}

fn judge(marks: &[Mark], cut: usize, found: &Places, after: &Recorded) {
    let next = marks.partition_point(|mark| mark.end <= cut);
    let before = marks[..next].last().expect("the first mark is at the start");
    let during = marks.get(next).unwrap_or(before);
    let context =
        format!("cut at byte {cut}, in {} after {}", during.call, before.call);
    let names = found.keys().chain(before.places.keys()).chain(during.places.keys());
    for name in names {
        let place = found.get(name);
        let legal = [before.places.get(name), during.places.get(name)];
        assert!(
            legal.contains(&place),
            "{context}: {name} is {place:?}, not {legal:?}"
        );
    }
    if before.end == cut {
        let digest = after.server.command(&[b"DEBUG", b"DIGEST"]);
        assert_eq!(digest, before.digest, "{context}");
    }
}
