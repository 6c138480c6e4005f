//! Tests which marker an operator can set on a queue that has other keys (R25).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::num::NonZeroU16;

use relq_conformance::server::Server;
use relq_core::QueueName;
use relq_redis::{Owner, Partition, RedisConfig, mark};

/// A lease that runs until the year 2286.
const RUNNING: &str = "ZADD {q}:leased 9999999999999 lease";

const EXPIRED: &str = "ZADD {q}:leased 1 lease";

fn owner(backend: &'static str) -> Owner {
    Owner::new(backend, QueueName::new("q").unwrap())
}

fn say(server: &Server, words: &str) -> String {
    let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
    String::from_utf8(server.command(&words)).unwrap()
}

/// R25: a queue gets another marker only if its new owner knows all of its keys and takes
/// no running job from a worker. Only a change of the number of parts disturbs no worker.
#[tokio::test]
async fn a_marker_is_replaced_only_where_no_job_is_disturbed() {
    let server = Server::start();
    let config = RedisConfig::new(&server.url()).unwrap();
    let two = NonZeroU16::new(2).unwrap();
    let two = Partition::First { pushed_to: two, claimed_from: two };
    let two_parts = owner("zset").partition(two);
    let shared = owner("processing-list").option("mode=shared");
    let (zset, keyspace) = ("relq 4 zset", "relq 4 keyspace");
    let (list, three) = ("relq 4 processing-list", "relq 4 zset partitions=3");

    for (before, key, meant, after, refusal) in [
        (keyspace, "RPUSH q job", owner("zset"), zset, ""),
        (keyspace, EXPIRED, owner("zset"), keyspace, "1 expired leases: recover them"),
        (keyspace, RUNNING, owner("zset"), keyspace, "is not at rest"),
        (keyspace, "RPUSH {q}:processing x", owner("zset"), keyspace, "has the key"),
        (list, RUNNING, shared, list, "is not at rest"),
        (three, RUNNING, two_parts, "relq 4 zset partitions=2", ""),
    ] {
        say(&server, "FLUSHALL");
        server.command(&[b"SET", b"{q}:marker", before.as_bytes()]);
        assert_eq!(say(&server, key), ":1\r\n", "{key}");

        let refused = mark(config.clone(), &meant).await.err();

        let refused = refused.map(|it| it.full_message()).unwrap_or_default();
        assert_eq!(
            refused.is_empty(),
            refusal.is_empty(),
            "{before}, {key}: {refused}"
        );
        assert!(refused.contains(refusal), "{before}, {key}: {refused}");
        let stored = say(&server, "GET {q}:marker");
        assert_eq!(stored.lines().nth(1), Some(after), "{before}, {key}");
    }
}
