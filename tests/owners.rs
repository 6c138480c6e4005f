//! R25: a queue on Redis has one owner, and all other backends of relq refuse to open
//! it.
#![cfg(all(
    feature = "circular",
    feature = "keyspace",
    feature = "processing-list",
    feature = "stream",
    feature = "zset"
))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet, num::NonZeroU32, pin::Pin, sync::Arc, time::Duration,
};

use relq::{
    ClaimRequest, ConnectError, Delivery, Error, JobId, NewJob, PushToken, Queue,
    QueueName, ReliableQueueExt, WorkerId,
    batch::{BatchId, NewBatch},
    capabilities::Capability,
    environment::{Clock, Environment, SystemClock, Timestamp},
    error::Effect,
    operator::WorkerReport,
    outcome::Settled,
    redis::{ClockDifference, Seen},
    unique::UniqueKey,
};
use relq_conformance::server::Server;

const LEASE: Duration = Duration::from_secs(30);
const BRIEF: Duration = Duration::from_millis(30);

/// The ways to open a queue on Redis: for each backend and each of its modes, the
/// scheme and the option of the URL.
const WAYS: [(&str, &str); 7] = [
    ("zset", ""),
    ("stream", ""),
    ("keyspace", ""),
    ("circular", ""),
    ("circular", "finish=lrem"),
    ("processing-list", ""),
    ("processing-list", "mode=shared"),
];

fn url(server: &Server, (backend, option): (&str, &str)) -> String {
    let sign = if option.is_empty() { "" } else { "?" };
    format!("{backend}+{}{sign}{option}", server.url())
}

fn named(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

async fn open(server: &Server, way: (&str, &str)) -> Arc<dyn Queue> {
    relq::connect(&url(server, way), &named("q")).await.unwrap()
}

/// Tries to open the queue with this scheme and option, which must fail. Returns the
/// error.
async fn refusal(server: &Server, way: (&str, &str)) -> String {
    let refused = relq::connect(&url(server, way), &named("q")).await;
    unusable(refused.err().unwrap_or_else(|| panic!("{way:?} is let in")))
}

fn unusable(error: ConnectError) -> String {
    let ConnectError::Queue(error) = error else { panic!("{error}") };
    assert!(matches!(error, Error::Unusable { .. }), "{}", error.full_message());
    error.full_message()
}

async fn take(queue: &dyn Queue, lease: Duration) -> Delivery {
    let ask = ClaimRequest::new(WorkerId::new("w").unwrap(), lease);
    queue.claim_one(&ask).await.unwrap().unwrap()
}

/// Returns all keys and values of the server, so that two states can be compared.
fn contents(server: &Server) -> String {
    let script = "local keys, all = redis.call('KEYS', '*'), {} table.sort(keys) \
                  for _, key in ipairs(keys) do \
                  all[#all + 1] = key .. ' ' .. redis.call('DUMP', key) end \
                  return table.concat(all, '\\n')";
    server.command(&[b"EVAL", script.as_bytes(), b"0"]).escape_ascii().to_string()
}

fn marker(server: &Server) -> String {
    let answer = server.command(&[b"GET", b"{q}:marker"]);
    let answer = String::from_utf8(answer).unwrap();
    answer.lines().nth(1).unwrap_or_default().to_owned()
}

fn keys(server: &Server) -> Vec<String> {
    let answer = String::from_utf8(server.command(&[b"KEYS", b"{q}:*"])).unwrap();
    answer.lines().skip(2).step_by(2).map(str::to_owned).collect()
}

/// Each backend refuses a queue that another backend owns, and its error names the
/// right URL. The jobs in the queue do not change.
#[tokio::test]
async fn no_backend_touches_the_queue_of_another() {
    for owner in WAYS {
        let server = Server::start();
        let queue = open(&server, owner).await;
        queue.push(&["1".into(), "2".into(), "3".into()], None).await.unwrap();
        let held = take(&*queue, LEASE).await;
        take(&*queue, BRIEF).await;
        let before = contents(&server);

        for other in WAYS.into_iter().filter(|other| other.0 != owner.0) {
            let refused = refusal(&server, other).await;

            let socket = server.url().replace("unix://", "");
            let right = format!("open it with {}+unix://{socket}", owner.0);
            assert!(refused.contains(&right), "{owner:?} by {other:?}: {refused}");
            assert!(refused.contains(owner.1), "{owner:?} by {other:?}: {refused}");
        }
        assert_eq!(contents(&server), before, "{owner:?}");
        assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    }
}

/// Two clients of one backend may use different modes, which are values of its URL
/// option. The marker keeps the mode of the first client.
#[tokio::test]
async fn both_modes_of_a_backend_share_a_queue() {
    for (backend, option) in
        [("circular", "finish=lrem"), ("processing-list", "mode=shared")]
    {
        for [first, second] in [["", option], [option, ""]] {
            let server = Server::start();
            let one = open(&server, (backend, first)).await;
            one.push(&["1".into(), "2".into()], None).await.unwrap();
            let held = take(&*one, LEASE).await;
            let own = marker(&server);

            let other = open(&server, (backend, second)).await;
            let again = take(&*other, LEASE).await;
            other.recover(many(10)).await.unwrap();

            assert_eq!(one.ack(&held.receipt).await.unwrap(), Settled::Applied);
            assert_eq!(other.ack(&again.receipt).await.unwrap(), Settled::Applied);
            assert_eq!(other.audit().await.unwrap().problems, [""; 0]);
            assert_eq!(marker(&server), own);
            assert_eq!(own, format!("relq 4 {backend} {first}").trim_end());
        }
    }
}

/// When two backends make the first write to a queue at the same time, one of them
/// owns the queue and the other writes nothing.
#[tokio::test]
async fn one_of_two_first_writers_wins() {
    let server = Server::start();
    let mut winners = BTreeSet::new();
    for round in 0..40 {
        server.command(&[b"FLUSHALL"]);
        let (a, b) = (WAYS[round % 2], WAYS[3 + round % 2]);
        let [one, other] = [open(&server, a).await, open(&server, b).await];

        let jobs = [NewJob::new("job")];
        let (first, second) = if round % 4 < 2 {
            tokio::join!(one.push(&jobs, None), other.push(&jobs, None))
        } else {
            let (second, first) =
                tokio::join!(other.push(&jobs, None), one.push(&jobs, None));
            (first, second)
        };

        let (winner, refused) = match (first, second) {
            (Ok(_), Err(refused)) => (a, refused),
            (Err(refused), Ok(_)) => (b, refused),
            both => panic!("{both:?}"),
        };
        assert!(
            matches!(refused, Error::Unusable { .. }),
            "{}",
            refused.full_message()
        );
        assert_eq!(refused.effect(), Effect::No);
        let queue = open(&server, winner).await;
        assert_eq!(queue.stats().await.unwrap().ready, 1);
        assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
        winners.insert(winner);
    }
    assert!(winners.len() > 1, "{winners:?}");
}

/// If a server has no marker but one key of a backend, every backend refuses the queue.
/// The test proves that `queue-redis/src/layout.rs` lists all keys that the backends
/// use. `needs_no_marker` names the exceptions.
#[tokio::test]
async fn each_key_of_each_backend_needs_a_marker() {
    for owner in WAYS {
        let server = Server::start();
        fill(&*open(&server, owner).await).await;
        let known = keys(&server);
        assert!(known.len() > 8, "{owner:?}: {known:?}");
        for key in known.iter().filter(|key| !needs_no_marker(key)) {
            let alone = Server::start();
            let kind = server.command(&[b"TYPE", key.as_bytes()]);
            assert_ne!(kind, b"+none\r\n", "{key}");
            alone.command(&[b"SET", key.as_bytes(), b"any value"]);
            let before = contents(&alone);

            for way in WAYS {
                let refused = refusal(&alone, way).await;
                assert!(refused.contains("relq marker set -q q"), "{key}: {refused}");
            }
            assert_eq!(contents(&alone), before, "{key}");
        }
    }
}

/// Whether backends accept a queue that has only this key: the marker itself, the key
/// to which other clients push to wake a worker, the stream that outlives a purge, or a key
/// with an id in its name. A key with an id never exists without other keys.
fn needs_no_marker(key: &str) -> bool {
    let of_one = ["w:", "batch:record:", "batch:pieces:", "batch:live:"];
    let part = key.trim_start_matches("{q}:");
    ["marker", "wake", "ended"].contains(&part)
        || of_one.iter().any(|begin| part.starts_with(begin))
}

/// Fills a queue with calls, until each of its data structures has content.
async fn fill(queue: &dyn Queue) {
    let can = queue.capabilities();
    let key = |key| UniqueKey::new(key).unwrap();
    let mut jobs = vec![
        NewJob::new("id").id(JobId::new("id").unwrap()),
        NewJob::new("later").delay(LEASE),
        NewJob::new("unique").unique(key("k")).expires_in(LEASE),
    ];
    let levels = [can.priorities.start(), can.priorities.end()];
    jobs.extend(levels.map(|level| NewJob::new("level").priority(*level)));
    jobs.extend(["1", "2", "3", "4", "5", "6"].map(NewJob::new));
    let token = PushToken::new("token").unwrap();
    queue.push(&jobs, Some(&token)).await.unwrap();
    let worker = WorkerId::new("w").unwrap();
    let ask = ClaimRequest::new(worker.clone(), LEASE).max(many(8));
    let held = queue.claim(&ask).await.unwrap();
    queue.ack(&held[0].receipt).await.unwrap();
    queue.bury(&held[1].receipt, "no").await.unwrap();
    queue.retry(&held[2].receipt, LEASE, "again").await.unwrap();
    queue.cancel(held[3].job()).await.unwrap();
    queue.extend(&worker, &[held[4].receipt.clone()], LEASE).await.unwrap();
    queue.report_worker(&WorkerReport::new(worker, many(8))).await.unwrap();
    queue.pause().await.unwrap();
    if can.supports(Capability::Batches) {
        let batches = queue.batch_queue().unwrap();
        for name in ["open", "ended"] {
            let id = BatchId::new(name).unwrap();
            batches.create(&NewBatch::new(id.clone())).await.unwrap();
            if name == "open" {
                batches.add(&id, &["piece".into()], None).await.unwrap();
            } else {
                batches.seal(&id).await.unwrap();
            }
        }
    }
}

/// If another program has written a value of a wrong type into a key of the queue, each
/// call that needs the key fails with an error that names the key.
#[tokio::test]
async fn an_error_names_the_key_of_another_type() {
    for way in WAYS {
        let server = Server::start();
        fill(&*open(&server, way).await).await;
        let known = keys(&server).into_iter().filter(|key| has_no_id(key));
        let producers = server.command(&[b"EXISTS", b"q"]) == b":1\r\n";
        let known: Vec<_> = known.chain(producers.then(|| "q".to_owned())).collect();
        let mut named = 0;
        for key in &known {
            let server = Server::start();
            let queue = open(&server, way).await;
            fill(&*queue).await;
            server.command(&[b"SET", key.as_bytes(), b"foreign"]);

            let errors = errors(&*queue).await;

            for error in errors.iter().filter(|error| error.contains("WRONGTYPE")) {
                let names_it = format!("the key {key:?} is not a ");
                assert!(error.contains(&names_it), "{way:?}, {key}: {error}");
                let keys = error.matches(" is not a ").count();
                assert_eq!(keys, 1, "{way:?}, {key}: {error}");
                named += 1;
            }
        }
        assert!(named > known.len(), "{way:?}: {named} errors for {known:?}");
    }
}

/// Whether the name of a key contains no id of a job, batch or session.
fn has_no_id(key: &str) -> bool {
    let with_id = [":w:", ":record:", ":pieces:", ":live:", ":marker"];
    !with_id.iter().any(|part| key.contains(part))
}

/// Makes one call of each kind to a queue. Returns the messages of the calls that fail.
async fn errors(queue: &dyn Queue) -> Vec<String> {
    let worker = WorkerId::new("w").unwrap();
    let ask = ClaimRequest::new(worker.clone(), LEASE);
    let mut errors = vec![
        queue.push_one("plain".into()).await.err(),
        queue.resume().await.err(),
        queue.stats().await.err(),
        queue.recover(many(10)).await.err(),
    ];
    match queue.claim_one(&ask).await {
        Ok(Some(held)) => errors.push(queue.ack(&held.receipt).await.err()),
        Ok(None) => {}
        Err(error) => errors.push(Some(error)),
    }
    errors.into_iter().flatten().map(|error| error.full_message()).collect()
}

/// A person can mark a queue that has keys but no marker, as soon as no worker holds a
/// job.
#[tokio::test]
async fn a_queue_without_a_marker_is_marked_at_rest() {
    for way in WAYS {
        let server = Server::start();
        let queue = open(&server, way).await;
        queue.push(&["1".into(), "2".into()], None).await.unwrap();
        let held = take(&*queue, LEASE).await;
        let own = marker(&server);
        server.command(&[b"DEL", b"{q}:marker"]);
        let (at, name) = (url(&server, way), named("q"));
        assert_eq!(relq::redis::see(&at, &name).await.unwrap(), Seen::Unmarked);
        let before = contents(&server);

        let busy = unusable(relq::redis::mark(&at, &name).await.unwrap_err());

        assert!(busy.contains("not at rest"), "{busy}");
        assert_eq!(contents(&server), before, "{way:?}");
        server.command(&[b"SET", b"{q}:marker", own.as_bytes()]);
        queue.release_worker(&WorkerId::new("w").unwrap()).await.unwrap();
        assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::LeaseLost);
        server.command(&[b"DEL", b"{q}:marker"]);
        relq::redis::mark(&at, &name).await.unwrap();
        assert_eq!(marker(&server), own);
        let seen = relq::redis::see(&at, &name).await.unwrap();
        assert!(matches!(&seen, Seen::Marked { url, .. } if *url == at), "{seen:?}");
        take(&*open(&server, way).await, LEASE).await;
    }
}

/// Setting the marker that the queue already has is allowed while workers run, and
/// changes nothing.
#[tokio::test]
async fn the_right_marker_can_be_set_at_any_time() {
    for way in WAYS {
        let server = Server::start();
        let queue = open(&server, way).await;
        queue.push_one("1".into()).await.unwrap();
        take(&*queue, LEASE).await;
        let before = contents(&server);

        relq::redis::mark(&url(&server, way), &named("q")).await.unwrap();

        assert_eq!(contents(&server), before, "{way:?}");
    }
}

/// A queue cannot be marked for a backend that does not know all of its keys.
#[tokio::test]
async fn a_queue_is_not_marked_for_a_backend_that_lacks_its_keys() {
    for owner in [WAYS[0], WAYS[1], WAYS[6]] {
        let server = Server::start();
        fill(&*open(&server, owner).await).await;
        server.command(&[b"DEL", b"{q}:leased"]);
        let before = contents(&server);
        for other in WAYS.into_iter().filter(|other| other.0 != owner.0) {
            let marked = relq::redis::mark(&url(&server, other), &named("q")).await;

            let refused = unusable(marked.unwrap_err());
            assert!(
                refused.contains("has the key"),
                "{owner:?} as {other:?}: {refused}"
            );
        }
        assert_eq!(contents(&server), before, "{owner:?}");
    }
}

/// A queue with expired leases cannot be marked for another backend. Its own backend
/// must recover these leases first.
#[tokio::test]
async fn a_queue_with_ended_leases_is_not_given_to_another() {
    let server = Server::start();
    server.command(&[b"SET", b"{q}:marker", b"relq 4 keyspace"]);
    server.command(&[b"ZADD", b"{q}:leased", b"1", b"processing_1_w"]);

    let marked = relq::redis::mark(&url(&server, WAYS[0]), &named("q")).await;

    let refused = unusable(marked.unwrap_err());
    assert!(refused.contains("recover them first"), "{refused}");
    assert_eq!(marker(&server), "relq 4 keyspace");
}

/// An older relq refuses to set a marker on a queue that a newer relq wrote.
#[tokio::test]
async fn a_newer_marker_is_left_alone() {
    let server = Server::start();
    server.command(&[b"SET", b"{q}:marker", b"relq 5 zset"]);

    let refused = relq::redis::mark(&url(&server, WAYS[0]), &named("q")).await;

    let refused = unusable(refused.unwrap_err());
    assert!(refused.contains("newer relq"), "{refused}");
    assert_eq!(marker(&server), "relq 5 zset");
}

/// A refused writer does not raise the format of the marker.
#[tokio::test]
async fn a_refused_writer_raises_no_format() {
    let server = Server::start();
    let queue = open(&server, ("keyspace", "")).await;
    server.command(&[b"SET", b"{q}:marker", b"relq 1 keyspace"]);
    server.command(&[b"SET", b"relq:database", b"another queue"]);

    let refused = queue.push(&[NewJob::new("job")], None).await.unwrap_err();

    assert!(refused.full_message().contains("another queue"), "{refused:?}");
    assert_eq!(marker(&server), "relq 1 keyspace", "nothing was changed");
}

/// The marker of an empty queue can be removed, also if it has an earlier format. A queue
/// with jobs, or one that another backend owns, keeps its marker.
#[tokio::test]
async fn the_marker_of_an_empty_queue_is_removed() {
    for way in WAYS {
        let server = Server::start();
        let queue = open(&server, way).await;
        queue.push(&[NewJob::new("job")], None).await.unwrap();
        let (own, name) = (url(&server, way), named("q"));
        assert!(!relq::redis::unmark(&own, &name).await.unwrap(), "{way:?}: in use");
        assert!(marker(&server).starts_with("relq 4 "));

        queue.purge().await.unwrap();
        let other = if way.0 == "zset" { ("stream", "") } else { ("zset", "") };
        let others = url(&server, other);
        assert!(!relq::redis::unmark(&others, &name).await.unwrap(), "{way:?}: owned");
        let earlier = marker(&server).replacen("relq 4 ", "relq 2 ", 1);
        server.command(&[b"SET", b"{q}:marker", earlier.as_bytes()]);
        assert!(relq::redis::unmark(&own, &name).await.unwrap(), "{way:?}: empty");

        assert_eq!(keys(&server), Vec::<String>::new(), "{way:?}");
    }
}

/// A queue that has kept results is empty after a purge, too, whether the results were
/// forgotten before or not.
#[tokio::test]
async fn the_marker_of_a_queue_that_kept_results_is_removed() {
    for (way, keep) in [("zset", LEASE), ("zset", BRIEF), ("stream", LEASE)] {
        let server = Server::start();
        let queue = open(&server, (way, "")).await;
        let job = NewJob::new("job").keep_result(keep);
        queue.push(&[job], None).await.unwrap();
        let ask = ClaimRequest::new(WorkerId::new("w").unwrap(), LEASE);
        let held = queue.claim(&ask).await.unwrap();
        queue.ack(&held[0].receipt).await.unwrap();
        let forgotten = async {
            while keep == BRIEF && keys(&server).contains(&"{q}:kept".to_owned()) {
                queue.recover(many(8)).await.unwrap();
                tokio::time::sleep(BRIEF).await;
            }
        };
        tokio::time::timeout(LEASE, forgotten).await.expect("the result is forgotten");

        queue.purge().await.unwrap();
        let is_removed =
            relq::redis::unmark(&url(&server, (way, "")), &named("q")).await;

        assert!(is_removed.unwrap(), "{way} {keep:?}");
        for key in keys(&server) {
            let left = server.command(&[b"PTTL", key.as_bytes()]);
            assert!(!left.starts_with(b":-"), "{way} {keep:?}: {key} stays for ever");
        }
    }
}

/// `queues` finds every queue of the server, even if there are several pages of them,
/// and finds nothing else.
#[tokio::test]
async fn all_queues_are_found_by_page() {
    let server = Server::start();
    let names: BTreeSet<_> =
        (0..2500).map(|number| format!("queue {number}")).collect();
    for name in &names {
        let key = format!("{{{name}}}:marker");
        server.command(&[b"SET", key.as_bytes(), b"relq 4 stream"]);
        server.command(&[b"SET", name.as_bytes(), b"any key"]);
    }
    server.command(&[b"LPUSH", b"{odd}:marker", b"no string"]);

    let (mut found, mut after, mut pages) = (BTreeSet::new(), None, 0);
    loop {
        let page = relq::redis::queues(&server.url(), after.as_ref()).await.unwrap();
        found
            .extend(page.queues.into_iter().map(|one| (one.name.to_string(), one.url)));
        (after, pages) = (page.next, pages + 1);
        if after.is_none() {
            break;
        }
    }

    let url = format!("stream+{}", server.url());
    let mut expected: BTreeSet<_> =
        names.into_iter().map(|name| (name, Some(url.clone()))).collect();
    expected.insert(("odd".to_owned(), None));
    assert_eq!(found, expected);
    assert!(pages > 1, "{pages} pages");
}

/// A wall clock that is an hour fast.
#[derive(Debug)]
struct FastClock;

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(Duration::from_secs(3600))
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        SystemClock.sleep(duration)
    }
}

/// The check of a server says whether it keeps an append-only file, and how far the clock
/// of this machine is from the server's.
#[tokio::test]
async fn a_server_is_checked() {
    for (setting, has_file) in [("yes", true), ("no", false)] {
        let server = Server::start_with(&["--appendonly", setting]);
        let check =
            relq::redis::check_server(&server.url(), &named("q")).await.unwrap();
        assert_eq!(check.has_append_only_file, Some(has_file));
        let program = check.program.unwrap();
        let info = server.command(&[b"INFO", b"server"]);
        let field =
            format!("{}_version:{}\r\n", program.name.to_lowercase(), program.version);
        assert!(String::from_utf8_lossy(&info).contains(&field), "{field}");
        let difference = check.clock_difference.unwrap().length();
        assert!(difference < Duration::from_secs(5), "{difference:?}");

        let config = relq_redis::RedisConfig::new(&server.url()).unwrap();
        let fast = Environment::default().with_clock(Arc::new(FastClock));
        let owner = relq_redis::Owner::new("zset", named("q"));
        let check = relq_redis::check_server(config.environment(fast), &owner).await;
        let Some(ClockDifference::Ahead(by)) = check.unwrap().clock_difference else {
            panic!("this machine is not ahead");
        };
        assert!(by.as_secs().abs_diff(3600) < 5, "{by:?}");
        assert_eq!(keys(&server), Vec::<String>::new(), "nothing was written");
    }
}
