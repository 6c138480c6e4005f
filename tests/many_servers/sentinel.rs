//! `redis-sentinel://`: the master that the sentinels name serves the queue.

use std::{sync::Arc, time::Duration};

use relq::{ClaimRequest, Queue, WorkerId};
use relq_conformance::server::Node;
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use crate::{
    fixture::{
        LIMIT, drain, eventually, master_and_replica, open, open_after_fail_over, push,
        refusal,
    },
    silencer::Silencer,
};

/// How long after a fail-over a waiting claim may still be on the old master.
const SOON: Duration = Duration::from_secs(10);

/// A master with a replica, and three sentinels that watch them.
pub(crate) struct Watched {
    pub(crate) master: Node,
    pub(crate) replica: Node,
    sentinels: Vec<Node>,
}

impl Watched {
    pub(crate) async fn start() -> Self {
        let (master, replica) = master_and_replica().await;
        let watching = format!(
            "sentinel monitor main 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds main 500\n\
             sentinel failover-timeout main 3000\n",
            master.port()
        );
        let sentinels = [(); 3].map(|()| Node::start(&watching, &["--sentinel"]));
        let this = Self { master, replica, sentinels: sentinels.into() };
        for sentinel in &this.sentinels {
            eventually("a sentinel knows the others and the replica", || {
                let known = sentinel.ask(&["SENTINEL", "MASTER", "main"]);
                let has = |name, count| {
                    known.contains(&format!("{name}\r\n$1\r\n{count}\r\n"))
                };
                has("num-slaves", 1) && has("num-other-sentinels", 2)
            })
            .await;
        }
        this
    }

    async fn until_a_claim_waits(&self) {
        let is_blocked = || self.master.ask(&["CLIENT", "LIST"]).contains("flags=b");
        eventually("the claim waits", is_blocked).await;
    }

    /// Gives the sentinels no reply of the master that they accept. They promote the
    /// replica and cannot demote the old master, which still answers its clients.
    fn cut_off_the_master(&self) {
        let without = ["-@admin", "-@dangerous", "-ping", "-publish"];
        let limited = [&["ACL", "SETUSER", "default"][..], &without].concat();
        assert_eq!(self.master.ask(&limited), "+OK\r\n");
    }

    /// Lets clients listen to the sentinels or not.
    fn allow_listening(&self, is_allowed: bool) {
        let rule = if is_allowed { "+subscribe" } else { "-subscribe" };
        for sentinel in &self.sentinels {
            assert_eq!(sentinel.ask(&["ACL", "SETUSER", "default", rule]), "+OK\r\n");
            sentinel.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        }
    }

    pub(crate) fn hosts(&self) -> String {
        self.sentinels.iter().map(Node::address).collect::<Vec<_>>().join(",")
    }
}

/// R1, R21: after a fail-over, a client continues on the promoted replica, which has
/// the jobs that were replicated.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_served_by_the_promoted_replica() {
    let mut watched = Watched::start().await;
    // Nothing listens at the first address.
    let url = format!("zset+redis-sentinel://127.0.0.1:1,{}/main", watched.hosts());
    let queue = open(&url).await;
    push(&*queue, "before").await;
    eventually("the job is replicated", || {
        watched.replica.ask(&["LLEN", "emails"]) == ":1\r\n"
    })
    .await;

    watched.master.kill();
    push(&*queue, "after").await;

    assert_eq!(watched.replica.ask(&["LLEN", "emails"]), ":2\r\n");
    let done = drain(&*queue, 2).await;
    assert_eq!(done.into_iter().collect::<Vec<_>>(), ["after", "before"]);
}

/// A claim that waits on a master that the others cannot reach moves to the new
/// master. The old one still answers the client, so only the sentinels can tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_claim_moves_to_the_new_master() {
    let watched = Watched::start().await;
    let url = format!("zset+redis-sentinel://{}/main", watched.hosts());
    let idle = open(&url).await;
    let ask = ClaimRequest::new(WorkerId::new("idle").unwrap(), LIMIT).wait(LIMIT);
    let waiting = tokio::spawn(async move { idle.claim(&ask).await });
    watched.until_a_claim_waits().await;

    watched.cut_off_the_master();
    push(&*open_after_fail_over(&url).await, "job").await;

    let claimed = timeout(SOON, waiting).await.expect("the claim moves");
    assert_eq!(&claimed.unwrap().unwrap()[0].payload[..], b"job");
}

/// A claim moves to the new master although the runtime on which the queue was opened does
/// not run, as that of a worker whose handlers block its threads (R22).
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_beside_a_stalled_runtime_moves_to_the_new_master() {
    let watched = Watched::start().await;
    let url = format!("zset+redis-sentinel://{}/main", watched.hosts());
    let (idle, stalled) = open_on_a_runtime_of_its_own(url.clone()).await;
    let ask = ClaimRequest::new(WorkerId::new("idle").unwrap(), LIMIT).wait(LIMIT);
    let waiting = tokio::spawn(async move { idle.claim(&ask).await });
    watched.until_a_claim_waits().await;

    watched.cut_off_the_master();
    push(&*open_after_fail_over(&url).await, "job").await;

    let claimed = timeout(SOON, waiting).await.expect("the claim moves");
    assert_eq!(&claimed.unwrap().unwrap()[0].payload[..], b"job");
    stalled.shutdown_background();
}

/// Opens a queue on a new runtime, and then stops running that runtime.
async fn open_on_a_runtime_of_its_own(url: String) -> (Arc<dyn Queue>, Runtime) {
    let opening = move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        (runtime.block_on(open(&url)), runtime)
    };
    tokio::task::spawn_blocking(opening).await.unwrap()
}

/// A claim that waits moves to the new master although the connections on which the client
/// listened to the sentinels have died without a word.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_notices_that_it_listens_to_nothing() {
    let watched = Watched::start().await;
    let mut silencers = Vec::new();
    for sentinel in &watched.sentinels {
        silencers.push(Silencer::before(sentinel.address()).await);
    }
    let hosts = silencers.iter().map(Silencer::address).collect::<Vec<_>>().join(",");
    let url = format!("zset+redis-sentinel://{hosts}/main?connect_timeout=1s");
    let idle = open_after_fail_over(&url).await;
    let ask = ClaimRequest::new(WorkerId::new("idle").unwrap(), LIMIT).wait(LIMIT);
    let waiting = tokio::spawn(async move { idle.claim(&ask).await });
    watched.until_a_claim_waits().await;

    for silencer in &silencers {
        silencer.silence();
    }
    watched.cut_off_the_master();
    push(&*open_after_fail_over(&url).await, "job").await;

    let claimed = timeout(LIMIT / 2, waiting).await.expect("the claim moves");
    assert_eq!(&claimed.unwrap().unwrap()[0].payload[..], b"job");
}

/// A client that could not listen to the sentinels during a fail-over moves to the new
/// master when it listens again.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_listens_again_moves_to_the_new_master() {
    let watched = Watched::start().await;
    let url = format!("zset+redis-sentinel://{}/main", watched.hosts());
    let queue = open(&url).await;
    push(&*queue, "before").await;
    watched.allow_listening(false);
    watched.cut_off_the_master();
    push(&*open_after_fail_over(&url).await, "there").await;
    push(&*queue, "on the old master").await;
    let there = watched.replica.ask(&["LLEN", "emails"]);

    watched.allow_listening(true);

    let moves = async {
        while watched.replica.ask(&["LLEN", "emails"]) == there {
            push(&*queue, "after").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, moves).await.expect("the client moves");
}

/// A queue that is dropped listens to the sentinels no more. Its connections to them would
/// add up in a program that opens queues again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_queue_listens_to_no_sentinel() {
    let master = Node::start("", &[]);
    let watching = format!("sentinel monitor main 127.0.0.1 {} 1\n", master.port());
    let sentinel = Node::start(&watching, &["--sentinel"]);
    let listens =
        || sentinel.ask(&["CLIENT", "LIST", "TYPE", "pubsub"]).contains("id=");
    let queue =
        open(&format!("zset+redis-sentinel://{}/main", sentinel.address())).await;
    eventually("the queue listens", listens).await;

    drop(queue);

    eventually("it listens no more", || !listens()).await;
}

/// R21: the error for a service that no sentinel knows names the service, and the error
/// for sentinels that do not answer names their addresses.
#[tokio::test]
async fn an_unknown_service_is_named() {
    let sentinel = Node::start("", &["--sentinel"]);
    let at = sentinel.address();

    let unknown = refusal(&format!("redis-sentinel://{at}/mian")).await;
    let dead = refusal("redis-sentinel://127.0.0.1:1,127.0.0.1:2/main").await;

    assert!(unknown.contains("knows the service \"mian\""), "{unknown}");
    assert!(dead.contains("unavailable") && dead.contains("127.0.0.1:"), "{dead}");
}

/// Sentinels are asked with the user and the password of the URL, in which special
/// characters are percent-encoded. They are not those of the master.
#[tokio::test]
async fn sentinels_are_asked_with_their_own_user() {
    let master = Node::start("user default on >ofmaster ~* &* +@all", &[]);
    let watching = format!(
        "sentinel monitor main 127.0.0.1 {} 1\n\
         user default off\n\
         user relq on >p&%ß +@all &*\n",
        master.port()
    );
    let sentinel = Node::start(&watching, &["--sentinel"]);
    let of = |options: &str| {
        format!("zset+redis-sentinel://:ofmaster@{}/main?{options}", sentinel.address())
    };

    let queue = open(&of("sentinel_user=relq&sentinel_password=p%26%25%C3%9F")).await;
    push(&*queue, "job").await;
    let done = drain(&*queue, 1).await;

    assert_eq!(done.into_iter().collect::<Vec<_>>(), ["job"]);
    let refused = refusal(&of("sentinel_password=p%26%25%C3%9F")).await;
    assert!(refused.contains("WRONGPASS"), "{refused}");
}
