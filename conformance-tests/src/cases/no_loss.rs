//! Payloads are delivered unchanged, and a push stores all of its jobs or none.

use bytes::Bytes;
use relq_core::{
    Disposition, Error, Headers, NewJob, capabilities::Limits, operator::JobState,
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            dead, delivers, drain, expect_exactly, id, key, numbered, payloads,
            retry_now,
        },
        store::Store,
        times::HELD,
    },
};

/// R2, R3: a drain returns exactly the jobs that were pushed.
async fn round_trip<P: Into<Bytes>>(store: &Store, sent: impl IntoIterator<Item = P>) {
    let (producer, worker) = (store.actor("producer").await, store.actor("w").await);
    let sent: Vec<Bytes> = sent.into_iter().map(Into::into).collect();

    producer.store(sent.clone()).await;

    delivers(&worker, sent).await;
}

case!(an_empty_payload_arrives_empty: R2);
/// An empty payload is a valid payload.
async fn an_empty_payload_arrives_empty(store: &Store) {
    round_trip(store, [""]).await;
}

case!(every_byte_arrives: R2, real_time);
/// Each of the 256 byte values is delivered unchanged, alone and all in one payload.
async fn every_byte_arrives(store: &Store) {
    let alone = (0..=u8::MAX).map(|byte| vec![byte]);
    round_trip(store, alone.chain([(0..=u8::MAX).collect()])).await;
}

case!(syntax_of_others_arrives: R2);
/// Characters that are special to stores, shells or key names are delivered unchanged.
async fn syntax_of_others_arrives(store: &Store) {
    let nasty = [
        "\0",
        "a\0b",
        "\n",
        "a\n",
        "\r\n",
        "*",
        ":",
        "{}",
        "{jobs}:dead",
        "'",
        "\"",
        "\\",
        "%s",
        "; --",
        "[]",
        "9007199254740993",
        "1e400",
        "nil",
        "false",
        " ",
        "\t",
    ];
    round_trip(store, nasty).await;
}

case!(protocol_like_payloads_arrive: R2);
/// A payload that looks like the Redis protocol is delivered unchanged.
async fn protocol_like_payloads_arrive(store: &Store) {
    let nasty =
        ["$-1\r\n", "*2\r\n$1\r\na\r\n", "+OK\r\n", "-ERR no\r\n", ":1\r\n", "_\r\n"];
    round_trip(store, nasty).await;
}

case!(invalid_utf8_arrives: R2);
/// A payload that is not valid UTF-8 is delivered unchanged.
async fn invalid_utf8_arrives(store: &Store) {
    let nasty: [&[u8]; 5] =
        [b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"ok\x80"];
    round_trip(store, nasty).await;
}

case!(payloads_with_relqs_mark_arrive: R2);
/// A payload that begins with relq's reserved bytes is not taken for an entry of relq.
async fn payloads_with_relqs_mark_arrive(store: &Store) {
    let nasty: [&[u8]; 5] = [
        b"\xf5\x52\x51\x01",
        b"\xf5\x52\x51\x01 and more",
        b"\xf5\x52\x51\x01\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\xf5\x52\x51",
        b"\xf5\x52\x51\x02",
    ];
    round_trip(store, nasty).await;
}

case!(marked_payloads_survive_every_state: R2);
/// A payload that begins with relq's reserved bytes stays unchanged through delay,
/// failure and burial.
async fn marked_payloads_survive_every_state(store: &Store) {
    let actor = store.actor("worker").await;
    let payload = Bytes::from_static(b"\xf5\x52\x51\x01\x01\x02\x03");
    actor.store_one(payload.clone()).await;

    through_every_state(&actor).await;

    delivers(&actor, [payload]).await;
}

case!(bytes_and_headers_survive_every_state: R2);
/// A job's payload and headers stay unchanged through failure, burial and redrive.
async fn bytes_and_headers_survive_every_state(store: &Store) {
    let actor = store.actor("worker").await;
    let job = NewJob::new(b"\0\xff\r\n".to_vec()).header("trace", "00-ab\r\n{}");
    actor.store_one(job.clone()).await;

    through_every_state(&actor).await;

    let delivered = actor.take_one().await;
    assert_eq!((&delivered.payload, &delivered.headers), (&job.payload, &job.headers));
}

async fn through_every_state(actor: &Actor) {
    let held = actor.take_one().await;
    actor.say(&held, Disposition::GiveBack).await;
    let held = actor.take_one().await;
    actor.say(&held, retry_now()).await;
    actor.recover_all().await;
    let held = actor.take_one().await;
    actor.say(&held, dead("of old age")).await;
    actor
        .redrive(&relq_core::operator::Selection::All)
        .await
        .expect("the redrive is answered");
}

case!(the_largest_payload_arrives: R2);
/// A payload of the maximum size is allowed.
async fn the_largest_payload_arrives(store: &Store) {
    let actor = store.actor("worker").await;
    let largest = Bytes::from(vec![0xa5; actor.limits().max_payload]);
    actor.store_one(largest.clone()).await;

    let delivered = actor.take_one().await;

    assert!(delivered.payload == largest, "{} bytes arrive", delivered.payload.len());
}

case!(a_payload_above_the_limit_is_refused: R2 R5);
/// A payload one byte above the maximum is refused, and nothing is stored.
async fn a_payload_above_the_limit_is_refused(store: &Store) {
    let actor = store.actor("producer").await;
    let too_large = NewJob::new(vec![0; actor.limits().max_payload + 1]);

    let refused = actor.push(&[NewJob::new("fits"), too_large], None).await;

    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(headers_arrive_in_order: R2);
/// Headers arrive unchanged and in order, with any text.
async fn headers_arrive_in_order(store: &Store) {
    let actor = store.actor("worker").await;
    let headers: Headers = [
        ("z", "1"),
        ("a", ""),
        ("", "no name"),
        ("é\0\n", "\u{10ffff}"),
        ("A", ":*{}"),
    ]
    .into_iter()
    .collect();
    let mut job = NewJob::new("job");
    job.headers = headers.clone();
    actor.store_one(job).await;

    assert_eq!(actor.take_one().await.headers, headers);
}

case!(the_largest_headers_arrive: R2);
/// Headers of the maximum size arrive unchanged.
async fn the_largest_headers_arrive(store: &Store) {
    let actor = store.actor("worker").await;
    let value = "v".repeat(actor.limits().max_headers - 1);
    actor.store_one(NewJob::new("job").header("n", value.clone())).await;

    assert_eq!(actor.take_one().await.headers.get("n"), Some(&*value));
}

case!(headers_above_the_limit_are_refused: R2 R5);
/// Headers above the maximum size are refused, and nothing is stored.
async fn headers_above_the_limit_are_refused(store: &Store) {
    let actor = store.actor("producer").await;
    let value = "v".repeat(actor.limits().max_headers);
    let too_large = NewJob::new("job").header("n", value);

    let refused = actor.push(&[NewJob::new("fits"), too_large], None).await;

    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(the_largest_call_is_stored: R5);
/// The largest call is stored completely.
async fn the_largest_call_is_stored(store: &Store) {
    let actor = store.actor("worker").await;
    let sent = numbered(actor.limits().max_jobs_per_call.get() as usize);

    actor.store(sent.clone()).await;

    expect_exactly(payloads(&drain(&actor).await), sent);
}

case!(a_call_above_the_limit_is_refused: R5);
/// A call above the limit is refused, and nothing is stored.
async fn a_call_above_the_limit_is_refused(store: &Store) {
    let actor = store.actor("producer").await;
    let jobs =
        vec![NewJob::new("job"); actor.limits().max_jobs_per_call.get() as usize + 1];

    let refused = actor.push(&jobs, None).await;

    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(a_call_of_too_many_bytes_is_refused: R2 R5);
/// A call whose payloads are too many bytes together is refused, and nothing is stored,
/// although each payload is allowed. The bytes of headers count, too.
async fn a_call_of_too_many_bytes_is_refused(store: &Store) {
    let actor = store.actor("producer").await;
    let Limits { max_payload, max_bytes_per_push, max_jobs_per_call, .. } =
        *actor.limits();
    let largest = Bytes::from(vec![0xa5; max_payload.min(max_bytes_per_push)]);
    let needed = max_bytes_per_push / largest.len() + 1;
    if needed > max_jobs_per_call.get() as usize {
        // The other limits already forbid a call of more than `max_bytes_per_push`
        // bytes.
        return;
    }

    let as_many_as_fit = vec![NewJob::new(largest.clone()); needed - 1];
    let left = max_bytes_per_push - (needed - 1) * largest.len();
    let to_the_limit = NewJob::new(largest.slice(..left)).header("n", "v");
    for last in [NewJob::new(largest.clone()), to_the_limit] {
        let jobs = [&as_many_as_fit[..], &[last]].concat();

        let refused = actor.push(&jobs, None).await;

        let is_invalid = matches!(refused, Err(Error::Invalid { .. }));
        let bytes: usize = jobs.iter().map(NewJob::total_bytes).sum();
        assert!(is_invalid, "R2: {bytes} of {max_bytes_per_push} bytes: {refused:?}");
        assert_eq!(actor.figures().await.unfinished(), 0);
    }
}

case!(one_invalid_job_refuses_all: R5);
/// One invalid job at the end makes the whole call fail.
async fn one_invalid_job_refuses_all(store: &Store) {
    let actor = store.actor("producer").await;
    let mut jobs: Vec<NewJob> = numbered(50).into_iter().map(NewJob::new).collect();
    jobs.push(NewJob::new("bad").lease(std::time::Duration::ZERO));

    let refused = actor.push(&jobs, None).await;

    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(equal_payloads_are_two_jobs: R3 R7);
/// Two jobs with equal payloads are two jobs.
async fn equal_payloads_are_two_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["same", "same", "same"]).await;
    let held = actor.take(3).await;

    actor.finish(&held[1]).await;
    actor.release_worker(actor.worker()).await.expect("the release is answered");

    let rest = drain(&actor).await;
    let ids = rest.iter().map(|one| one.job().clone());
    expect_exactly(ids, [held[0].job().clone(), held[2].job().clone()]);
}

case!(an_empty_queue_delivers_nothing: R3);
/// A finished job is not delivered again, and nothing else appears.
async fn an_empty_queue_delivers_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(3)).await;
    drain(&actor).await;

    actor.recover_all().await;

    assert_eq!(actor.take(10).await, []);
}

case!(jobs_outlive_their_producer: R1);
/// Jobs that one connection pushed are still there after it has closed.
async fn jobs_outlive_their_producer(store: &Store) {
    let producer = store.actor("producer").await;
    let sent = numbered(20);
    producer.store(sent.clone()).await;

    drop(producer);

    delivers(&store.actor("w").await, sent).await;
}

case!(a_leased_job_is_kept: R1);
/// A leased job is still in the store.
async fn a_leased_job_is_kept(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;

    let held = actor.take_one().await;

    let leased = actor.list(JobState::Leased, 10).await;
    assert_eq!(leased.len(), 1);
    assert_eq!(leased[0].id.as_ref(), Some(held.job()));
    assert_eq!(leased[0].payload, held.payload);
    assert_eq!(held.lease, HELD);
}

case!(a_push_answers_in_order: R23);
/// A push returns a result for each job, in order.
async fn a_push_answers_in_order(store: &Store) {
    let actor = store.actor("worker").await;
    let ids = actor.store(numbered(100)).await;

    let held = actor.take(100).await;

    let delivered: Vec<_> =
        held.iter().map(|one| (one.job().clone(), one.payload.clone())).collect();
    expect_exactly(delivered, ids.into_iter().zip(numbered(100)));
}

case!(one_call_mixes_every_option: R5);
/// One push may contain jobs with different options, and each supported option works.
async fn one_call_mixes_every_option(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [
        NewJob::new("plain"),
        NewJob::new("id").id(id("mine")),
        NewJob::new("unique").unique(key("k")),
        NewJob::new("urgent").priority(actor.class().most_urgent()),
        NewJob::new("later").delay(HELD),
        NewJob::new("fresh").expires_in(HELD),
        NewJob::new("own lease").lease(HELD),
        NewJob::new("header").header("n", "v"),
    ];
    let class = actor.class();
    let taken: Vec<_> = jobs.into_iter().filter(|job| class.takes(job)).collect();

    actor.store(taken.clone()).await;

    let (later, ready): (Vec<_>, Vec<_>) =
        taken.into_iter().partition(|job| job.payload == "later");
    delivers(&actor, ready.into_iter().map(|job| job.payload)).await;
    assert_eq!(actor.figures().await.scheduled, later.len() as u64);
}
