//! `?partitions=3`: one queue of several parts, as a URL opens it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use relq::{
    ClaimRequest, ConnectError, Disposition, Error, NewJob, PushToken, Queue,
    QueueName, ReliableQueue as _, Settlement, WorkerId,
    batch::{
        Added, BatchId, BatchOutcome, BatchPriority, BatchState, BatchStatus, Change,
        Created, NewBatch, OnComplete,
    },
    capabilities::Order,
    environment::Environment,
    error::{ErrorContext, Operation},
    schedule::ScheduleName,
};
use relq_conformance::{
    async_trait,
    overrides::{OverriddenQueue, Override, Right},
    proxy::{Fault, FaultProxy, VirtualClock},
    server::Server,
};
use relq_partitions::{PartitionedQueue, fnv1a};

/// How long a test waits for a condition.
const LIMIT: Duration = Duration::from_secs(60);

const BACKENDS: [&str; 4] = ["zset", "stream", "circular", "processing-list"];

fn named(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn url(server: &Server, backend: &str, options: &str) -> String {
    format!("{backend}+{}?{options}", server.url())
}

async fn open(server: &Server, options: &str) -> Arc<dyn Queue> {
    relq::connect(&url(server, "zset", options), &named("q")).await.unwrap()
}

/// Opens the queue, or writes to it, which must fail. Returns the error.
async fn refusal(server: &Server, options: &str, name: &str) -> String {
    let opened = relq::connect(&url(server, "zset", options), &named(name)).await;
    let error = match opened {
        Ok(queue) => queue.push(&["job".into()], None).await.unwrap_err(),
        Err(ConnectError::Queue(error)) => error,
        Err(other) => return other.to_string(),
    };
    assert!(matches!(error, Error::Unusable { .. }), "{}", error.full_message());
    error.full_message()
}

fn marker(server: &Server, name: &str) -> String {
    let key = format!("{{{name}}}:marker");
    let answer = server.command(&[b"GET", key.as_bytes()]);
    let answer = String::from_utf8(answer).unwrap();
    answer.lines().nth(1).unwrap_or_default().to_owned()
}

fn ask(max: u32) -> ClaimRequest {
    let worker = WorkerId::new("worker").unwrap();
    let ask = ClaimRequest::new(worker, Duration::from_secs(30));
    ask.max(NonZeroU32::new(max).unwrap()).wait(Duration::from_secs(5))
}

/// Claims jobs and finishes them. Returns their payloads.
async fn finish_some(queue: &dyn Queue, ask: &ClaimRequest) -> Vec<Vec<u8>> {
    let claimed = queue.claim(ask).await.unwrap();
    let done = claimed.iter();
    let done = done.map(|job| Settlement::new(job.receipt.clone(), Disposition::Done));
    queue.settle(&done.collect::<Vec<_>>()).await.unwrap();
    claimed.into_iter().map(|job| job.payload.to_vec()).collect()
}

/// Claims and finishes so many jobs. Returns their payloads.
async fn drain(queue: &dyn Queue, jobs: usize) -> BTreeSet<Vec<u8>> {
    let mut payloads = BTreeSet::new();
    while payloads.len() < jobs {
        let finished = finish_some(queue, &ask(10)).await;
        assert!(!finished.is_empty(), "{} of {jobs} jobs", payloads.len());
        payloads.extend(finished);
    }
    payloads
}

/// Waits until the condition holds.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < LIMIT, "not in {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Each backend but keyspace keeps its jobs in several parts, and a plain producer's
/// jobs are in the first.
#[tokio::test]
async fn each_backend_has_parts() {
    for backend in BACKENDS {
        let server = Server::start();
        let url = url(&server, backend, "partitions=3");
        let queue = relq::connect(&url, &named("q")).await.unwrap();
        assert_eq!(queue.capabilities().order, Order::ByPart);
        for number in 0..30 {
            queue.push(&[number.to_string().into()], None).await.unwrap();
        }
        let plain = relq::connect(&url, &named("q")).await.unwrap();
        if backend != "stream" {
            server.command(&[b"LPUSH", b"q", b"plain"]);
        } else {
            server.command(&[b"XADD", b"q", b"*", b"job", b"plain"]);
        }

        let done = drain(&*plain, 31).await;

        assert!(done.contains(&b"plain"[..]), "{backend}");
        assert_eq!(queue.stats().await.unwrap().finished, 31, "{backend}");
        let number = |part: &str| marker(&server, part);
        assert!(number("q").starts_with(&format!("relq 4 {backend} partitions=3")));
        assert_eq!(number("q:1"), format!("relq 4 {backend} part=1"));
        assert_eq!(number("q:2"), format!("relq 4 {backend} part=2"));
    }
}

/// Each part can be opened alone, and its figures are those of the part.
#[tokio::test]
async fn a_part_can_be_opened_alone() {
    let server = Server::start();
    let queue = open(&server, "partitions=3").await;
    for _ in 0..6 {
        queue.push(&["job".into()], None).await.unwrap();
    }

    let part = relq::connect(&url(&server, "zset", "part=2"), &named("q:2")).await;

    assert_eq!(part.unwrap().stats().await.unwrap().ready, 2);
}

/// The error gives the reason why the options are refused.
#[tokio::test]
async fn wrong_options_are_refused() {
    let server = Server::start();
    for (options, words) in [
        ("partitions=0", "partitions must be one number from 1 to 256"),
        ("partitions=many", "partitions must be one number"),
        ("partitions=2&partitions=3", "partitions must be one number"),
        ("partitions=257", "from 1 to 256"),
        ("partitions=3&claim_from=2", "claim_from must not be less than partitions"),
        ("part=1", "has another name"),
        ("part=1&partitions=2", "opens one part alone"),
        ("partition=2", "no option \"partition\", only partitions, claim_from, part"),
    ] {
        let refused = refusal(&server, options, "q").await;
        assert!(refused.contains(words), "{options}: {refused}");
    }
    let long =
        refusal(&server, "partitions=2", &"n".repeat(QueueName::MAX_BYTES)).await;
    assert!(long.contains("the name of part 1: the queue name is too long"), "{long}");
    let url = url(&server, "keyspace", "partitions=2");
    let error = relq::connect(&url, &named("q")).await.unwrap_err().to_string();
    assert!(error.contains("needs a database of its own"), "{error}");
}

/// `partitions=1` is the plain queue.
#[tokio::test]
async fn one_part_is_a_plain_queue() {
    let server = Server::start();
    open(&server, "partitions=1").await.push(&["job".into()], None).await.unwrap();

    assert_eq!(marker(&server, "q"), "relq 4 zset");
    assert_eq!(open(&server, "").await.stats().await.unwrap().ready, 1);
}

/// R25: a client with another number of parts is refused, also if it opened the queue
/// before the first write, and is told the right URL.
#[tokio::test]
async fn another_number_of_parts_is_refused() {
    let server = Server::start();
    let early = open(&server, "partitions=2").await;
    let queue = open(&server, "partitions=3").await;
    queue.push(&["job".into()], None).await.unwrap();

    let late = early.push(&["job".into()], None).await.unwrap_err();
    assert!(late.full_message().contains("?partitions=3"), "{}", late.full_message());
    for options in ["", "partitions=2", "partitions=4", "partitions=4&claim_from=5"] {
        let refused = refusal(&server, options, "q").await;
        assert!(refused.contains("has 3 parts"), "{options}: {refused}");
        assert!(refused.contains("?partitions=3"), "{options}: {refused}");
    }
    assert_eq!(queue.stats().await.unwrap().ready, 1);
}

/// R25: the same holds for each call that changes a batch, also if the batch belongs to a
/// part that both clients know and whose own marker admits them.
#[tokio::test]
async fn another_number_of_parts_is_refused_for_batches() {
    let server = Server::start();
    let [two, three] =
        ["partitions=2", "partitions=3"].map(|options| url(&server, "stream", options));
    let early = relq::connect(&two, &named("q")).await.unwrap();
    let queue = relq::connect(&three, &named("q")).await.unwrap();
    let (early, batches) = (early.batch_queue().unwrap(), queue.batch_queue().unwrap());
    // These belong to part 1 for both clients.
    let ids = (0..).map(|number| BatchId::new(format!("batch-{number}")).unwrap());
    let mut ids = ids.filter(|id| fnv1a(id.as_str()) % 6 == 1);
    let (id, another) = (ids.next().unwrap(), ids.next().unwrap());
    batches.create(&NewBatch::new(id.clone())).await.unwrap();
    let before = batches.batch(&id).await.unwrap();

    let change = Change::default().priority(BatchPriority::LOWEST);
    for (call, error) in [
        ("create", early.create(&NewBatch::new(another.clone())).await.err()),
        ("add", early.add(&id, &[NewJob::new("1")], None).await.err()),
        ("alter", early.alter(&id, &change).await.err()),
        ("seal", early.seal(&id).await.err()),
        ("cancel", early.cancel_batch(&id).await.err()),
    ] {
        let error = error.unwrap_or_else(|| panic!("{call} is not refused"));
        let message = error.full_message();
        assert!(matches!(error, Error::Unusable { .. }), "{call}: {message}");
        assert!(message.contains("?partitions=3"), "{call}: {message}");
    }

    assert_eq!(batches.batch(&id).await.unwrap(), before);
    assert_eq!(batches.batch(&another).await.unwrap(), None);
}

/// R25: the name of a part cannot be used for a queue of its own, nor the name of such a
/// queue for a part.
#[tokio::test]
async fn a_part_is_no_queue_of_its_own() {
    let server = Server::start();
    let queue = open(&server, "partitions=2").await;
    for _ in 0..2 {
        queue.push(&["job".into()], None).await.unwrap();
    }
    let refused = refusal(&server, "", "q:1").await;
    assert!(refused.contains("part 1 of the queue \"q\""), "{refused}");

    let own = relq::connect(&url(&server, "zset", ""), &named("r:1")).await.unwrap();
    own.push(&["job".into()], None).await.unwrap();
    let refused = refusal(&server, "partitions=2", "r").await;
    assert!(refused.contains("cannot be part 1"), "{refused}");
}

/// R25: an older plain queue is not taken over. The error names the command, which works
/// while a lease runs.
#[tokio::test]
async fn a_plain_queue_is_not_taken_over() {
    let server = Server::start();
    let plain = open(&server, "").await;
    plain.push(&["1".into(), "2".into()], None).await.unwrap();
    assert_eq!(plain.claim(&ask(1)).await.unwrap().len(), 1);

    let refused = refusal(&server, "partitions=3", "q").await;
    assert!(refused.contains("has 1 part,"), "{refused}");
    assert!(refused.contains("relq marker set -q q --url"), "{refused}");

    relq::redis::mark(&url(&server, "zset", "partitions=3"), &named("q"))
        .await
        .unwrap();
    drain(&*open(&server, "partitions=3").await, 1).await;
}

/// The markers of all parts of an empty queue can be removed.
#[tokio::test]
async fn an_empty_queue_loses_the_markers_of_its_parts() {
    let server = Server::start();
    let queue = open(&server, "partitions=3").await;
    queue.recover(NonZeroU32::new(9).unwrap()).await.unwrap();
    assert_eq!(marker(&server, "q:2"), "relq 4 zset part=2");

    let url = url(&server, "zset", "partitions=3");
    assert!(relq::redis::unmark(&url, &named("q")).await.unwrap());

    assert_eq!(server.command(&[b"DBSIZE"]), b":0\r\n");
}

/// A batch is in one part, and its completion is found by every client.
#[tokio::test]
async fn batches_are_in_their_parts() {
    let server = Server::start();
    let url = url(&server, "stream", "partitions=3");
    let queue = relq::connect(&url, &named("q")).await.unwrap();
    let batches = queue.batch_queue().unwrap();
    let ids: Vec<_> =
        (0..6).map(|number| BatchId::new(format!("batch-{number}")).unwrap()).collect();
    for id in &ids {
        batches.create(&NewBatch::new(id.clone())).await.unwrap();
        let pieces = ["1", "2"].map(|piece| NewJob::new(format!("{id} {piece}")));
        batches.add(id, &pieces, None).await.unwrap();
        batches.seal(id).await.unwrap();
    }
    assert_eq!(drain(&*queue, 12).await.len(), 12);

    let listed = batches.list_batches(None, NonZeroU32::new(4).unwrap()).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|status| status.id).collect();
    assert_eq!(listed, ids[..4]);
    for id in &ids {
        let status = batches.wait_batch(id, Duration::from_secs(5)).await.unwrap();
        assert!(status.unwrap().outcome().is_some(), "{id}");
    }
}

/// Completes an empty batch, whose completion job goes to the queue `other`.
async fn complete(queue: &dyn Queue, id: &BatchId, other: &str) {
    let on_complete = OnComplete::new(NewJob::new("joined")).queue(named(other));
    let batch = NewBatch::new(id.clone()).on_complete(on_complete);
    let batches = queue.batch_queue().unwrap();
    assert_eq!(batches.create(&batch).await.unwrap(), Created::Stored);
    batches.seal(id).await.unwrap();
}

/// B5, R25: a completion job that is the first job of its queue gives that queue the number
/// of parts of the URL, whichever part the batch is in. So the clients that open all queues
/// with this URL can use it.
#[tokio::test]
async fn a_completion_gives_its_queue_the_parts_of_the_url() {
    let server = Server::start();
    for (options, parts) in [("partitions=3", 3), ("partitions=2&claim_from=3", 2)] {
        let url = url(&server, "stream", options);
        let queue = named(&format!("of-{parts}"));
        let queue = relq::connect(&url, &queue).await.unwrap();
        for part in 0..parts {
            let ids = (0..).map(|number| format!("batch-{number}"));
            let id = ids.into_iter().find(|id| fnv1a(id) % parts == part).unwrap();
            let other = format!("{id}-of-{parts}");

            complete(&*queue, &BatchId::new(id).unwrap(), &other).await;

            let marked = marker(&server, &other);
            assert_eq!(marked, format!("relq 4 stream partitions={parts}"));
            let other = relq::connect(&url, &named(&other)).await.unwrap();
            assert!(drain(&*other, 1).await.contains(&b"joined"[..]));
        }
    }
}

/// B5, R25: a queue that has a marker keeps it.
#[tokio::test]
async fn a_completion_goes_to_a_queue_of_another_number_of_parts() {
    let server = Server::start();
    let one = format!("stream+{}", server.url());
    let three = url(&server, "stream", "partitions=3");
    let other = relq::connect(&one, &named("other")).await.unwrap();
    other.push(&["first".into()], None).await.unwrap();
    let queue = relq::connect(&three, &named("q")).await.unwrap();

    complete(&*queue, &BatchId::new("batch").unwrap(), "other").await;

    assert_eq!(drain(&*other, 2).await.len(), 2);
    assert_eq!(marker(&server, "other"), "relq 4 stream");
}

/// B5, R25: a client of one part alone does not know how many parts a new queue must have. It
/// leaves the completion job in the outbox, and a recovery of the whole queue pushes it.
#[tokio::test]
async fn a_client_of_one_part_makes_no_new_queue() {
    let server = Server::start();
    let [alone, three] =
        ["part=1", "partitions=3"].map(|options| url(&server, "stream", options));
    let part = relq::connect(&alone, &named("q:1")).await.unwrap();

    complete(&*part, &BatchId::new("batch").unwrap(), "other").await;
    let page = NonZeroU32::new(100).unwrap();
    part.recover(page).await.unwrap();

    assert_eq!(marker(&server, "other"), "");
    let queue = relq::connect(&three, &named("q")).await.unwrap();
    queue.recover(page).await.unwrap();
    assert_eq!(marker(&server, "other"), "relq 4 stream partitions=3");
    let other = relq::connect(&three, &named("other")).await.unwrap();
    assert!(drain(&*other, 1).await.contains(&b"joined"[..]));
}

/// R21: a part that cannot say whether it has a batch does not read as "there is no such
/// batch", although the other parts have none.
#[tokio::test]
async fn a_part_that_fails_is_no_missing_batch() {
    let server = Server::start();
    let queue =
        relq::connect(&url(&server, "stream", "partitions=2"), &named("q")).await;
    let queue = queue.unwrap();
    let batches = queue.batch_queue().unwrap();
    for number in 0..4 {
        let id = BatchId::new(format!("batch-{number}")).unwrap();
        batches.create(&NewBatch::new(id.clone())).await.unwrap();
        let part = if fnv1a(id.as_str()).is_multiple_of(2) { "q" } else { "q:1" };
        let record = format!("{{{part}}}:batch:record:{id}");
        assert_eq!(server.command(&[b"DEL", record.as_bytes()]), b":1\r\n", "{record}");
        server.command(&[b"SET", record.as_bytes(), b"no record"]);

        batches.batch(&id).await.unwrap_err();
        batches.wait_batch(&id, Duration::from_secs(5)).await.unwrap_err();
    }
}

/// A part whose calls on batches fail with an error which says that they are done.
struct Unconfirmed;

fn unconfirmed<T>(operation: Operation) -> Result<T, Error> {
    let at = ErrorContext { backend: "mine", operation };
    Err(Error::NotReplicated { at, source: "0 of 1".into() })
}

#[async_trait]
impl Override for Unconfirmed {
    async fn add(
        &self,
        _: &Right,
        _: &BatchId,
        _: &[NewJob],
        _: Option<&PushToken>,
    ) -> Result<Added, Error> {
        unconfirmed(Operation::AddPieces)
    }

    async fn seal(&self, _: &Right, _: &BatchId) -> Result<Option<BatchStatus>, Error> {
        unconfirmed(Operation::SealBatch)
    }

    async fn cancel_batch(
        &self,
        _: &Right,
        _: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        unconfirmed(Operation::CancelBatch)
    }
}

/// R21: a call on a batch that fails at one part is not called done as long as another part,
/// which was not asked, may have the batch.
#[tokio::test]
async fn a_call_on_a_batch_is_called_done_only_if_each_part_was_asked() {
    let server = Server::start();
    let mut parts = Vec::new();
    for name in ["a", "b"] {
        let url = url(&server, "stream", "");
        parts.push(relq::connect(&url, &named(name)).await.unwrap());
    }
    let environment = Environment::default();
    let right = Right { queue: Arc::clone(&parts[0]), environment };
    parts[0] = Arc::new(OverriddenQueue::new(right, Arc::new(Unconfirmed)));
    let queue = PartitionedQueue::new(parts, Environment::default()).unwrap();
    let batches = queue.batch_queue().unwrap();

    // The part of the batch is asked first, and part 0 fails.
    for (part, are_all_asked) in [(0, false), (1, true)] {
        let mut ids = (0..).map(|number| format!("batch-{number}"));
        let id = ids.find(|id| queue.part_of().text(id) == part).unwrap();
        let id = BatchId::new(id).unwrap();
        for (call, error) in [
            ("add", batches.add(&id, &["piece".into()], None).await.err()),
            ("seal", batches.seal(&id).await.err()),
            ("cancel", batches.cancel_batch(&id).await.err()),
        ] {
            let error = error.unwrap_or_else(|| panic!("{call} does not fail"));
            let is_called_done = matches!(error, Error::NotReplicated { .. });
            let message = error.full_message();
            assert_eq!(is_called_done, are_all_asked, "{call}, part {part}: {message}");
        }
    }
}

/// A batch keeps working under its id when the number of parts has changed, also when the id
/// belongs to another part now.
#[tokio::test]
async fn batches_work_under_their_ids_when_the_number_of_parts_changes() {
    let server = Server::start();
    let [two, three] =
        ["partitions=2", "partitions=3"].map(|options| url(&server, "stream", options));
    let ids: Vec<_> =
        (0..8).map(|number| BatchId::new(format!("batch-{number}")).unwrap()).collect();
    let is_moved = |id: &&BatchId| fnv1a(id.as_str()) % 2 != fnv1a(id.as_str()) % 3;
    assert_eq!(ids.iter().filter(is_moved).count(), 6);
    let queue = relq::connect(&two, &named("q")).await.unwrap();
    for id in &ids {
        let batch = NewBatch::new(id.clone());
        let created = queue.batch_queue().unwrap().create(&batch).await.unwrap();
        assert_eq!(created, Created::Stored);
    }

    relq::redis::mark(&three, &named("q")).await.unwrap();
    let queue = relq::connect(&three, &named("q")).await.unwrap();
    let batches = queue.batch_queue().unwrap();
    for id in &ids {
        assert_eq!(batches.batch(id).await.unwrap().unwrap().state, BatchState::Open);
        let waited = batches.wait_batch(id, Duration::ZERO).await.unwrap().unwrap();
        assert_eq!(waited.state, BatchState::Open, "{id}");

        let token = PushToken::new(format!("add-{id}")).unwrap();
        let pieces = ["1", "2"].map(NewJob::new);
        let added = batches.add(id, &pieces, Some(&token)).await.unwrap();
        assert!(matches!(&added, Added::Stored(pieces) if pieces.len() == 2), "{id}");
        assert_eq!(batches.add(id, &pieces, Some(&token)).await.unwrap(), added);

        let change = Change::default().priority(BatchPriority::LOWEST);
        batches.alter(id, &change).await.unwrap().unwrap();
        let status = batches.batch(id).await.unwrap().unwrap();
        assert_eq!((status.total, status.priority), (2, BatchPriority::LOWEST), "{id}");

        let sealed = batches.seal(id).await.unwrap().unwrap();
        assert_eq!(sealed.state, BatchState::Sealed, "{id}");
        batches.cancel_batch(id).await.unwrap().unwrap();
    }

    let mut after = None;
    for id in &ids {
        let page = batches.list_batches(after, NonZeroU32::MIN).await.unwrap();
        let page: Vec<_> = page.iter().map(|status| &status.id).collect();
        assert_eq!(page, [id]);
        after = Some(id);
    }
    assert_eq!(batches.list_batches(after, NonZeroU32::MIN).await.unwrap(), []);
    let many = NonZeroU32::new(100).unwrap();
    eventually("the batches are cancelled", async || {
        queue.recover(many).await.unwrap();
        let listed = batches.list_batches(None, many).await.unwrap();
        let cancelled = BatchState::Completed(BatchOutcome::Cancelled);
        listed.len() == ids.len() && listed.iter().all(|it| it.state == cancelled)
    })
    .await;
}

/// B5: a call that waits for a batch waits until the batch completes, also if the batch is in
/// another part than the one that its id belongs to, and which is asked first.
#[tokio::test]
async fn a_batch_of_another_part_is_waited_for() {
    let server = Server::start();
    let [two, three] =
        ["partitions=2", "partitions=3"].map(|options| url(&server, "stream", options));
    let mut ids = (0..).map(|number| BatchId::new(format!("batch-{number}")).unwrap());
    let is_moved = |id: &BatchId| fnv1a(id.as_str()) % 2 != fnv1a(id.as_str()) % 3;
    let id = ids.find(is_moved).unwrap();
    let queue = relq::connect(&two, &named("q")).await.unwrap();
    let batches = queue.batch_queue().unwrap();
    batches.create(&NewBatch::new(id.clone())).await.unwrap();
    batches.add(&id, &["piece".into()], None).await.unwrap();
    batches.seal(&id).await.unwrap();
    relq::redis::mark(&three, &named("q")).await.unwrap();
    let queue = relq::connect(&three, &named("q")).await.unwrap();
    let mut waiting = queue.batch_queue().unwrap().wait_batch(&id, LIMIT);

    let early = tokio::time::timeout(Duration::from_millis(500), &mut waiting).await;
    assert!(
        early.is_err(),
        "B5: the batch has not completed, and the wait ends: {early:?}"
    );
    assert_eq!(drain(&*queue, 1).await.len(), 1);

    let status = waiting.await.unwrap().expect("the batch is found");
    assert_eq!(status.outcome(), Some(BatchOutcome::Done), "B5: the piece is done");
}

/// Runs workers that open the queue by these options, one after the other, until told to
/// stop. Returns the payloads that they have finished.
async fn work(url: String, stop: Arc<AtomicBool>) -> Vec<Vec<u8>> {
    let queue = relq::connect(&url, &named("q")).await.unwrap();
    let mut payloads = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let ask = ask(4).wait(Duration::from_millis(200));
        payloads.extend(finish_some(&*queue, &ask).await);
    }
    payloads
}

/// The steps of docs/scale.md, from one number of parts to another, while workers and
/// producers go on. Every job runs, and none is left in a part that is no more.
async fn change(from: u16, to: u16) {
    let server = Server::start();
    let (few, many) = (from.min(to), from.max(to));
    let between = url(&server, "zset", &format!("partitions={few}&claim_from={many}"));
    let [old, new] =
        [from, to].map(|parts| url(&server, "zset", &format!("partitions={parts}")));
    let (stop_old, stop_new) =
        (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let mut pushed = 0;
    let mut push = async |url: &str| {
        let queue = relq::connect(url, &named("q")).await.unwrap();
        for _ in 0..30 {
            queue.push(&[pushed.to_string().into()], None).await.unwrap();
            pushed += 1;
        }
    };
    push(&old).await;
    let before = tokio::spawn(work(old.clone(), Arc::clone(&stop_old)));
    push(&old).await;

    // 1. Every client is started again with both numbers.
    let meanwhile = tokio::spawn(work(between.clone(), Arc::clone(&stop_new)));
    push(&old).await;
    stop_old.store(true, Ordering::Release);
    let mut done = before.await.unwrap();
    push(&between).await;
    // 2. The marker is changed when the dropped parts are empty.
    eventually("the dropped parts are empty", async || {
        relq::redis::mark(&new, &named("q")).await.is_ok()
    })
    .await;
    push(&between).await;
    // 3. Every client is started again with the new number.
    let stop_last = Arc::<AtomicBool>::default();
    let last = tokio::spawn(work(new.clone(), Arc::clone(&stop_last)));
    stop_new.store(true, Ordering::Release);
    done.extend(meanwhile.await.unwrap());
    push(&new).await;
    let queue = relq::connect(&new, &named("q")).await.unwrap();
    eventually("all jobs are finished", async || {
        queue.stats().await.unwrap().unfinished() == 0
    })
    .await;
    stop_last.store(true, Ordering::Release);
    done.extend(last.await.unwrap());

    let different: BTreeSet<_> = done.iter().collect();
    assert_eq!((done.len(), different.len()), (180, 180), "from {from} to {to}");
    let ready = |part: &str| server.command(&[b"LLEN", part.as_bytes()]);
    assert!((0..3).all(|part| {
        let name = if part == 0 { "q".to_owned() } else { format!("q:{part}") };
        ready(&name) == b":0\r\n"
    }));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_job_is_lost_from_three_parts_to_two() {
    change(3, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_job_is_lost_from_two_parts_to_three() {
    change(2, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_job_is_lost_from_one_part_to_three_and_back() {
    change(1, 3).await;
    change(3, 1).await;
}

/// A part that is to be dropped must be empty before the number is changed.
#[tokio::test]
async fn a_part_with_jobs_is_not_dropped() {
    let server = Server::start();
    let queue = open(&server, "partitions=3").await;
    for _ in 0..3 {
        queue.push(&["job".into()], None).await.unwrap();
    }

    the_last_part_is_not_dropped(&server).await;
}

/// A part whose only job is delayed or dead has a job, too: workers of the other parts would
/// never see it again.
#[tokio::test]
async fn a_part_without_ready_jobs_is_not_dropped() {
    let server = Server::start();
    let many = NonZeroU32::new(9).unwrap();
    open(&server, "partitions=3").await.recover(many).await.unwrap();
    let part = relq::connect(&url(&server, "zset", "part=2"), &named("q:2")).await;
    let part = part.unwrap();

    let delayed = NewJob::new("job").delay(Duration::from_secs(3600));
    part.push(&[delayed], None).await.unwrap();
    the_last_part_is_not_dropped(&server).await;

    assert_eq!(part.purge().await.unwrap(), 1);
    part.push(&["job".into()], None).await.unwrap();
    let claimed = part.claim(&ask(1)).await.unwrap();
    let dead = Disposition::Dead { error: "no".to_owned() };
    let buried = Settlement::new(claimed[0].receipt.clone(), dead);
    part.settle(&[buried]).await.unwrap();
    the_last_part_is_not_dropped(&server).await;
}

/// Asserts that the last of three parts, which has one job, cannot be dropped.
async fn the_last_part_is_not_dropped(server: &Server) {
    let error = refusal_to_mark(server, "zset", "partitions=2").await;

    assert!(error.contains("part 2 of the queue q still has 1 jobs"), "{error}");
    assert!(error.contains("?partitions=2&claim_from=3"), "{error}");
    assert_eq!(marker(server, "q"), "relq 4 zset partitions=3");
}

/// Marks the queue for these options, which must fail. Returns the error.
async fn refusal_to_mark(server: &Server, backend: &str, options: &str) -> String {
    let marked = relq::redis::mark(&url(server, backend, options), &named("q")).await;
    let ConnectError::Queue(error) = marked.unwrap_err() else { panic!("{options}") };
    assert!(matches!(error, Error::Unusable { .. }), "{}", error.full_message());
    error.full_message()
}

/// A part with jobs is not dropped either if the marker of the queue is missing or damaged: the
/// markers of the other parts say how many there are.
#[tokio::test]
async fn a_queue_without_its_marker_drops_no_part_with_jobs() {
    let server = Server::start();
    let queue = open(&server, "partitions=3").await;
    for _ in 0..3 {
        queue.push(&["job".into()], None).await.unwrap();
    }
    for damage in ["DEL {q}:marker", "SET {q}:marker damaged"] {
        let words: Vec<_> = damage.split(' ').map(str::as_bytes).collect();
        server.command(&words);

        for (options, part) in [("partitions=2", 2), ("partitions=1", 1), ("", 1)] {
            let error = refusal_to_mark(&server, "zset", options).await;
            let words = format!("part {part} of the queue q still has 1 jobs");
            assert!(error.contains(&words), "{damage}, {options}: {error}");
            assert!(error.contains("?partitions=3"), "{damage}, {options}: {error}");
        }

        let three = url(&server, "zset", "partitions=3");
        relq::redis::mark(&three, &named("q")).await.unwrap();
        let stats = open(&server, "partitions=3").await.stats().await.unwrap();
        assert_eq!(stats.ready, 3, "{damage}");
    }
}

/// B5, B6: a part that has a batch has no job if the batch is open and empty, or if its
/// completion job waits for another queue. No client would visit either after the change.
#[tokio::test]
async fn a_part_with_a_batch_is_not_dropped() {
    let server = Server::start();
    let three = url(&server, "stream", "partitions=3");
    let queue = relq::connect(&three, &named("q")).await.unwrap();
    let batches = queue.batch_queue().unwrap();
    let ids = (0..).map(|number| BatchId::new(format!("batch-{number}")).unwrap());
    let mut ids = ids.filter(|id| fnv1a(id.as_str()) % 3 == 2);
    let (empty, completed) = (ids.next().unwrap(), ids.next().unwrap());
    // The completion job cannot be pushed to a key of another type.
    server.command(&[b"SET", b"join", b"foreign"]);
    let on_complete = OnComplete::new(NewJob::new("join")).queue(named("join"));
    let telling = NewBatch::new(completed.clone()).on_complete(on_complete);
    batches.create(&telling).await.unwrap();
    batches.seal(&completed).await.unwrap();
    let part = relq::connect(&url(&server, "stream", "part=2"), &named("q:2")).await;
    let part = part.unwrap();

    let error = refusal_to_mark(&server, "stream", "partitions=2").await;
    assert!(error.contains(&format!("still has the batch {completed}:")), "{error}");

    part.purge().await.unwrap();
    batches.create(&NewBatch::new(empty.clone())).await.unwrap();
    let error = refusal_to_mark(&server, "stream", "partitions=2").await;
    assert!(error.contains("part 2 of the queue q"), "{error}");
    assert!(error.contains(&format!("still has the batch {empty}:")), "{error}");
    assert!(error.contains("?partitions=2&claim_from=3"), "{error}");
    assert_eq!(marker(&server, "q"), "relq 4 stream partitions=3");

    part.purge().await.unwrap();
    let two = url(&server, "stream", "partitions=2");
    relq::redis::mark(&two, &named("q")).await.unwrap();
}

/// A paused queue gets and loses no parts: one that is added would deliver jobs, and one that
/// is dropped would still be paused when it is added again.
#[tokio::test]
async fn a_paused_queue_keeps_its_number_of_parts() {
    let server = Server::start();
    let queue = open(&server, "").await;
    queue.pause().await.unwrap();

    let error = refusal_to_mark(&server, "zset", "partitions=3").await;

    assert!(error.contains("the queue \"q\" is paused"), "{error}");
    assert_eq!(marker(&server, "q"), "relq 4 zset");
    queue.resume().await.unwrap();
    let three = url(&server, "zset", "partitions=3");
    relq::redis::mark(&three, &named("q")).await.unwrap();
    open(&server, "partitions=3").await.pause().await.unwrap();

    let error = refusal_to_mark(&server, "zset", "partitions=2").await;

    assert!(error.contains("part 2 of the queue q is paused"), "{error}");
    assert_eq!(marker(&server, "q"), "relq 4 zset partitions=3");
}

/// A part that was paused alone is not added to a queue that runs, because its jobs would
/// stand still.
#[tokio::test]
async fn a_paused_part_is_not_added() {
    let server = Server::start();
    let [two, three] =
        ["partitions=2", "partitions=3"].map(|options| url(&server, "zset", options));
    relq::redis::mark(&two, &named("q")).await.unwrap();
    let part = relq::connect(&url(&server, "zset", "part=2"), &named("q:2")).await;
    let part = part.unwrap();
    part.pause().await.unwrap();

    let error = refusal_to_mark(&server, "zset", "partitions=3").await;

    assert!(error.contains("part 2 of the queue q is paused"), "{error}");
    assert_eq!(marker(&server, "q"), "relq 4 zset partitions=2");
    part.resume().await.unwrap();
    relq::redis::mark(&three, &named("q")).await.unwrap();
    let queue = open(&server, "partitions=3").await;
    for number in 0..3 {
        queue.push(&[number.to_string().into()], None).await.unwrap();
    }
    assert_eq!(drain(&*queue, 3).await.len(), 3);
}

/// R28: a queue of several parts has no schedules, so they would be out of reach.
#[tokio::test]
async fn a_queue_with_schedules_gets_no_parts() {
    let server = Server::start();
    let name = ScheduleName::new("poll").unwrap();
    let queue = open(&server, "").await;
    let schedules = queue.schedule_queue().unwrap();
    schedules.put_schedule(&name, b"hourly").await.unwrap();

    let error = refusal_to_mark(&server, "zset", "partitions=3").await;

    assert!(error.contains("the queue \"q\" has 1 schedules"), "{error}");
    assert_eq!(marker(&server, "q"), "relq 4 zset");
    assert!(schedules.remove_schedule(&name).await.unwrap());
    let three = url(&server, "zset", "partitions=3");
    relq::redis::mark(&three, &named("q")).await.unwrap();
    assert_eq!(marker(&server, "q"), "relq 4 zset partitions=3");
}

/// R28: a schedule that is stored while the marker is being changed is not out of reach:
/// the change is refused, whichever of its steps the schedule comes before.
#[tokio::test]
async fn a_schedule_stored_meanwhile_keeps_the_queue_whole() {
    let mut steps = 0;
    loop {
        let server = Server::start();
        open(&server, "").await.push(&["job".into()], None).await.unwrap();
        let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
        let operator = proxy.actor("operator").unwrap();
        let put = ["HSET", "{q}:schedules", "poll", "123456hourly"];
        let meanwhile = Fault::Meanwhile(put.map(str::to_owned).to_vec());
        proxy.plan("operator", steps + 1, meanwhile);
        let three = format!("zset+{}?partitions=3", operator.url());

        let marked = relq::redis::mark(&three, &named("q")).await;

        if !proxy.unfired().is_empty() {
            break;
        }
        steps += 1;
        let error = marked.map_err(|error| error.to_string());
        assert_eq!(marker(&server, "q"), "relq 4 zset", "before {steps}: {error:?}");
        assert!(error.is_err(), "before {steps}");
    }
    assert!(steps > 2, "{steps} steps");
}
