//! DURABLE: power cut after any write, with every write on the disk before it is
//! answered.

use std::{sync::Arc, time::Duration};

use queue_core::{
    Capability, Delivery, NewJob, Queue, Receipt, Settlement, Verdict, Which,
};

use super::{
    append_only_file::{Recorded, ends},
    stage::{
        LEASE, Places, Stage, ask, eventually, job_id, many, places, push_plain, token,
        with_options, worker_id,
    },
};

/// Where the writes end that a call answered for, and where the jobs were then.
struct Mark {
    call: &'static str,
    end: usize,
    places: Places,
    digest: Vec<u8>,
}

/// Claims that may find less than there is.
const TURNS: usize = 20;

/// Makes calls, and notes what is so after each.
struct Tape<'a> {
    stage: &'a Stage,
    recorded: Recorded,
    queue: Arc<dyn Queue>,
    marks: Vec<Mark>,
}

impl<'a> Tape<'a> {
    async fn start(stage: &'a Stage) -> Self {
        let recorded = Recorded::start();
        let digest = recorded.server.command(&[b"DEBUG", b"DIGEST"]);
        let nothing = Mark { call: "the start", end: 0, places: Places::new(), digest };
        let queue = stage.connect(&recorded.server).await;
        let mut tape = Self { stage, recorded, queue, marks: vec![nothing] };
        tape.mark("connect").await;
        tape
    }

    async fn mark(&mut self, call: &'static str) {
        let places = places(&*self.queue).await;
        let digest = self.recorded.server.command(&[b"DEBUG", b"DIGEST"]);
        let end = self.recorded.writes().len();
        self.marks.push(Mark { call, end, places, digest });
    }

    /// As many claims as it takes: a ring may have to come round.
    async fn claim(&mut self, count: usize) -> Vec<Delivery> {
        let mut held = Vec::new();
        for _ in 0..TURNS {
            held.extend(take_some(&*self.queue, count - held.len()).await);
            self.mark("claim").await;
            if held.len() == count {
                return held;
            }
        }
        panic!("{} of {count} jobs were delivered", held.len());
    }

    async fn settle(&mut self, done: &[Settlement]) {
        self.queue.settle(done).await.expect("settled");
        self.mark("settle").await;
    }
}

/// Every kind of call that writes, once at least.
async fn play(tape: &mut Tape<'_>) {
    push(tape).await;
    let held = tape.claim(6).await;
    work(tape, &held).await;
    time_passes(tape).await;
    operate(tape).await;
}

async fn push(tape: &mut Tape<'_>) {
    push_plain(&*tape.queue, &["a", "b", "c", "d", "e", "f"]).await;
    tape.mark("push").await;
    let mut jobs = with_options(&*tape.queue);
    if tape.queue.capabilities().claims(Capability::Delay) {
        jobs.push(NewJob::new("soon").delay(Duration::from_millis(1)));
    }
    let token = token(&*tape.queue, "token");
    tape.queue.push(&jobs, token.as_ref()).await.expect("pushed");
    tape.mark("push of options").await;
    let command = tape.stage.subject.plain_push(&tape.stage.queue, b"bare");
    let words: Vec<_> = command.iter().map(Vec::as_slice).collect();
    tape.recorded.server.command(&words);
    tape.mark("a client's push").await;
}

async fn work(tape: &mut Tape<'_>, held: &[Delivery]) {
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
    tape.queue.extend(&worker_id(), rest, LEASE * 2).await.expect("extended");
    tape.mark("extend").await;
    let turn = tape.queue.turn(&[say(&rest[0], Verdict::Done)], &ask(1)).await;
    assert!(turn.settled.is_ok() && turn.claimed.is_ok());
    tape.mark("turn").await;
    tape.queue.leave(&worker_id()).await.expect("left");
    tape.mark("leave").await;
}

/// A lease ends and is recovered; a job that was delayed becomes ready.
async fn time_passes(tape: &mut Tape<'_>) {
    let mut brief = ask(1);
    brief.lease = Duration::from_millis(1);
    tape.queue.claim(&brief).await.expect("claimed");
    tape.mark("a brief claim").await;
    let queue = Arc::clone(&tape.queue);
    eventually("the end of a lease", async || {
        queue.stats().await.expect("answered").overdue == 1
    })
    .await;
    tape.queue.recover(many(100)).await.expect("recovered");
    tape.mark("recover").await;
}

async fn operate(tape: &mut Tape<'_>) {
    tape.queue.redrive(&Which::All).await.expect("redriven");
    tape.mark("redrive").await;
    tape.queue.pause().await.expect("paused");
    tape.mark("pause").await;
    tape.queue.resume().await.expect("resumed");
    tape.mark("resume").await;
    tape.queue.cancel(&job_id("mine")).await.expect("answered");
    tape.mark("cancel").await;
    let held = tape.claim(2).await;
    let dead = Verdict::Dead { error: "never".into() };
    let dead: Vec<_> = held.iter().map(|one| say(&one.receipt, dead.clone())).collect();
    tape.settle(&dead).await;
    tape.queue.purge_dead(&Which::All).await.expect("purged");
    tape.mark("purge_dead").await;
    tape.queue.purge().await.expect("purged");
    tape.mark("purge").await;
}

async fn take_some(queue: &dyn Queue, count: usize) -> Vec<Delivery> {
    let max = u32::try_from(count).expect("few jobs");
    queue.claim(&ask(max)).await.expect("claimed")
}

fn say(receipt: &Receipt, verdict: Verdict) -> Settlement {
    Settlement::new(receipt.clone(), verdict)
}

/// R1, R5: whatever prefix of the writes is left, all that was answered is there, and
/// each job is where it was before or after the call under way.
pub(super) async fn every_aof_prefix(stage: &Stage) {
    let mut tape = Tape::start(stage).await;
    play(&mut tape).await;
    let writes = tape.recorded.writes();

    let cuts = ends(&writes);
    assert!(cuts.len() > 50, "only {} writes were recorded", cuts.len());
    for cut in cuts {
        let after = tape.recorded.after_cut(&writes[..cut]);
        let found = places(&*stage.connect(&after.server).await).await;
        judge(&tape.marks, cut, &found, &after);
    }
}

fn judge(marks: &[Mark], cut: usize, found: &Places, after: &Recorded) {
    let next = marks.partition_point(|mark| mark.end <= cut);
    let before = marks[..next].last().expect("the first mark is where the file begins");
    let during = marks.get(next).unwrap_or(before);
    let context =
        format!("cut at byte {cut}, in {} after {}", during.call, before.call);
    if during.call.starts_with("push") {
        let is_whole = [&before.places, &during.places].contains(&found);
        assert!(is_whole, "R5, all or nothing: {context}: {found:?}");
    }
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
