//! `redis-cluster://`: the master of the queue's slot serves the queue.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use relq::{
    Bytes, ClaimRequest, Error, JobId, NewJob, QueueName, ReliableQueueExt as _,
    WorkerId,
    error::{Effect, RetryAdvice},
    outcome::Settled,
    results::JobResult,
    unique::UniqueKey,
};
use relq_conformance::server::{Node, Server};

use crate::fixture::{
    LIMIT, drain, eventually, numbers, open, open_after_fail_over, push, push_all,
    refusal,
};

/// The slot of the queue `emails`, by `CLUSTER KEYSLOT`.
const SLOT: &str = "3728";

/// A cluster of masters that share the slots evenly. The queue is on the first.
struct Cluster(Vec<Node>);

impl Cluster {
    async fn start(masters: usize) -> Self {
        let nodes: Vec<_> = (0..masters).map(|_| Node::in_a_cluster()).collect();
        let share = 16_384_usize.div_ceil(masters);
        for (at, node) in nodes.iter().enumerate() {
            let last = (share * (at + 1)).min(16_384) - 1;
            let slots = [(share * at).to_string(), last.to_string()];
            let added = node.ask(&["CLUSTER", "ADDSLOTSRANGE", &slots[0], &slots[1]]);
            assert_eq!(added, "+OK\r\n");
        }
        let this = Self(nodes);
        for node in &this.0[1..] {
            this.meet(node);
        }
        for node in &this.0 {
            let all = format!("cluster_known_nodes:{masters}");
            eventually("the cluster forms", || {
                let info = node.ask(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains(&all)
            })
            .await;
        }
        this
    }

    fn meet(&self, node: &Node) {
        let bus = node.ask(&["CONFIG", "GET", "cluster-port"]);
        let bus = bus.lines().last().unwrap().to_owned();
        let port = node.port().to_string();
        self.0[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
    }

    fn url(&self, backend: &str) -> String {
        let hosts = self.0.iter().map(Node::address).collect::<Vec<_>>().join(",");
        format!("{backend}+redis-cluster://{hosts}")
    }

    /// Begins to move the slot of the queue from one node to another.
    fn begin_move(&self, from: usize, to: usize) {
        let (from_id, to_id) = (id(&self.0[from]), id(&self.0[to]));
        let importing = ["CLUSTER", "SETSLOT", SLOT, "IMPORTING", &from_id];
        assert_eq!(self.0[to].ask(&importing), "+OK\r\n");
        let migrating = ["CLUSTER", "SETSLOT", SLOT, "MIGRATING", &to_id];
        assert_eq!(self.0[from].ask(&migrating), "+OK\r\n");
    }

    /// Moves the keys of the slot, one after the other.
    fn move_keys(&self, from: usize, to: usize) {
        loop {
            let keys = self.0[from].ask(&["CLUSTER", "GETKEYSINSLOT", SLOT, "1"]);
            let Some(key) = keys.lines().nth(2).map(str::to_owned) else { return };
            self.move_key(from, to, &key);
        }
    }

    fn move_key(&self, from: usize, to: usize, key: &str) {
        let port = self.0[to].port().to_string();
        let moved =
            self.0[from].ask(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
        assert!(moved == "+OK\r\n" || moved == "+NOKEY\r\n", "{key}: {moved}");
    }

    fn end_move(&self, to: usize) {
        let owner = id(&self.0[to]);
        for node in [to, 0, 1] {
            let told = self.0[node].ask(&["CLUSTER", "SETSLOT", SLOT, "NODE", &owner]);
            assert_eq!(told, "+OK\r\n");
        }
    }

    /// Waits until all nodes know how often the slots have changed hands. A node that does
    /// not know it could give a slot back to its earlier master.
    async fn until_agreed(&self) {
        let epoch = |node: &Node| {
            let info = node.ask(&["CLUSTER", "INFO"]);
            let mut lines = info.lines();
            let epoch = lines.find_map(|it| it.strip_prefix("cluster_current_epoch:"));
            epoch.unwrap().to_owned()
        };
        eventually("all nodes have the same epoch", || {
            let epochs: BTreeSet<_> = self.0.iter().map(epoch).collect();
            epochs.len() == 1
        })
        .await;
    }
}

fn id(node: &Node) -> String {
    node.ask(&["CLUSTER", "MYID"]).lines().nth(1).unwrap().to_owned()
}

/// Whether the node has refused a call with this code.
fn has_refused(node: &Node, code: &str) -> bool {
    node.ask(&["INFO", "errorstats"]).contains(&format!("errorstat_{code}:"))
}

/// R1, R4: a slot moves from node to node and back while jobs are pushed and run. Each
/// push is stored once, and each job is delivered.
#[tokio::test(flavor = "multi_thread")]
async fn no_job_is_lost_or_doubled_while_the_slot_moves() {
    let cluster = Cluster::start(2).await;
    for backend in ["zset", "stream", "circular", "processing-list"] {
        let producer = open(&cluster.url(backend)).await;
        let worker = open(&cluster.url(backend)).await;

        let pushing = tokio::spawn(async move {
            push_all(&*producer, numbers(400)).await;
        });
        let working = tokio::spawn(async move {
            let done = drain(&*worker, 400).await;
            (done, worker)
        });
        for (from, to) in [(0, 1), (1, 0), (0, 1), (1, 0)] {
            cluster.begin_move(from, to);
            cluster.move_keys(from, to);
            cluster.end_move(to);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }

        pushing.await.unwrap();
        let (done, worker) = working.await.unwrap();
        assert_eq!(done, numbers(400).collect());
        let stats = worker.stats().await.unwrap();
        assert_eq!(
            (stats.ready, stats.leased, stats.finished),
            (0, 0, 400),
            "{backend}"
        );
        worker.purge().await.unwrap();
        relq::redis::unmark(&cluster.url(backend), &crate::fixture::name())
            .await
            .unwrap();
    }
}

/// A new client finds the master of a slot that was moved alone, so that it is a range of
/// its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_of_its_own_is_found() {
    let cluster = Cluster::start(2).await;
    cluster.begin_move(0, 1);
    cluster.end_move(1);

    let queue = open(&cluster.url("zset")).await;
    push(&*queue, "job").await;

    assert_eq!(drain(&*queue, 1).await, BTreeSet::from(["job".to_owned()]));
}

/// A client that opens a queue while its slot moves waits for the end of the move.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_opened_while_its_slot_moves() {
    let cluster = Cluster::start(2).await;
    push(&*open(&cluster.url("zset")).await, "job").await;
    cluster.begin_move(0, 1);
    cluster.move_keys(0, 1);

    let url = format!("{}?connect_timeout=30s", cluster.url("zset"));
    let moving = async {
        let refuses = || has_refused(&cluster.0[0], "ASK");
        eventually("the old node refuses", refuses).await;
        cluster.end_move(1);
    };
    let (queue, ()) = tokio::join!(open(&url), moving);

    assert_eq!(drain(&*queue, 1).await, BTreeSet::from(["job".to_owned()]));
}

/// R25: a recovery checks the marker before it changes anything. It follows the slot also
/// if it is the first call after a move.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_recovery_after_a_move_follows_the_slot() {
    let cluster = Cluster::start(2).await;
    let queue = open(&cluster.url("zset")).await;
    push(&*queue, "job").await;
    cluster.begin_move(0, 1);
    cluster.move_keys(0, 1);
    cluster.end_move(1);

    queue.recover(NonZeroU32::MIN).await.unwrap();

    assert!(has_refused(&cluster.0[0], "MOVED"), "the recovery began at the old node");
}

/// A redirection holds for one new connection. When the slot has moved back, a client asks
/// all nodes again, and the node of the redirection need not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirection_is_used_once() {
    let cluster = Cluster::start(2).await;
    for node in &cluster.0 {
        // A node that believes that the frozen one is dead would refuse all calls.
        let patient = ["CONFIG", "SET", "cluster-node-timeout", "600000"];
        assert_eq!(node.ask(&patient), "+OK\r\n");
    }
    let options = "connect_timeout=1s&response_timeout=1s";
    let url = format!("{}?{options}", cluster.url("zset"));
    // A machine that stands still may let the first attempt time out.
    let queue = open_after_fail_over(&url).await;
    push(&*queue, "here").await;
    cluster.begin_move(0, 1);
    cluster.move_keys(0, 1);
    cluster.end_move(1);
    push(&*queue, "there").await;
    assert!(has_refused(&cluster.0[0], "MOVED"), "the push was redirected");

    cluster.until_agreed().await;
    cluster.begin_move(1, 0);
    cluster.move_keys(1, 0);
    cluster.end_move(0);
    cluster.0[1].freeze();
    push(&*queue, "back").await;

    let done = drain(&*open(&cluster.url("zset")).await, 3).await;
    assert_eq!(done.into_iter().collect::<Vec<_>>(), ["back", "here", "there"]);
}

/// When the nodes that the URL names are gone, a client goes on with those that it has
/// learned from them.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_the_url_does_not_name_serve_the_queue() {
    let mut cluster = Cluster::start(3).await;
    cluster.begin_move(0, 1);
    cluster.end_move(1);
    for node in &cluster.0 {
        let partly = ["CONFIG", "SET", "cluster-require-full-coverage", "no"];
        assert_eq!(node.ask(&partly), "+OK\r\n");
    }
    let named = cluster.0[0].address();
    let queue = open(&format!("zset+redis-cluster://{named}")).await;
    push(&*queue, "before").await;

    cluster.0[0].kill();
    cluster.0[1].ask(&["CLIENT", "KILL", "TYPE", "normal"]);
    push(&*queue, "after").await;

    let done = drain(&*queue, 2).await;
    assert_eq!(done.into_iter().collect::<Vec<_>>(), ["after", "before"]);
}

/// R21: a push on a new connection is repeated while the nodes do not agree which of them
/// serves the slot. A queue has a connection for each runtime.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_on_a_new_connection_waits_for_the_slot() {
    let cluster = Cluster::start(2).await;
    let queue = open(&cluster.url("zset")).await;
    queue.push_one("first".into()).await.unwrap();
    cluster.begin_move(0, 1);
    cluster.move_keys(0, 1);
    // The old node names the new one, which does not serve the slot yet.
    let told = ["CLUSTER", "SETSLOT", SLOT, "NODE", &id(&cluster.0[1])];
    assert_eq!(cluster.0[0].ask(&told), "+OK\r\n");

    let pushing = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(queue.push_one("second".into())).unwrap();
        queue
    });
    let refuses = || has_refused(&cluster.0[1], "MOVED");
    eventually("the new node refuses", refuses).await;
    cluster.end_move(1);

    let queue = pushing.join().unwrap();
    assert_eq!(drain(&*queue, 2).await.len(), 2);
}

/// R21: a call that waits for replicas is not made at the node to which the slot is
/// moving, because that node may not have the marker yet. It changes nothing until the
/// slot has moved. If that takes too long, its error says that it can be repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_replicas_waits_for_the_slot() {
    let cluster = Cluster::start(2).await;
    let url = cluster.url("zset");
    let options = "replicas=1&replica_timeout=100ms&response_timeout=3s";
    let queue = open(&format!("{url}?{options}")).await;
    // The cluster has no replica, so the job is stored and not confirmed.
    let error = queue.push_one("first".into()).await.unwrap_err();
    assert!(matches!(error, Error::NotReplicated { .. }), "{error:?}");
    drain(&*open(&url).await, 1).await;

    cluster.begin_move(0, 1);
    let error = queue.push_one("second".into()).await.unwrap_err();

    assert!(matches!(error, Error::Unavailable { .. }), "{}", error.full_message());
    assert_eq!((error.effect(), error.retry_advice()), (Effect::No, RetryAdvice::Safe));
    let ready = ["LLEN", "emails"];
    assert!(cluster.0[0].ask(&ready).starts_with("-ASK"));
    cluster.move_keys(0, 1);
    cluster.end_move(1);
    assert_eq!(cluster.0[1].ask(&ready), ":0\r\n");
}

/// R21: a call that needs a single key does not wait for the end of a move. The old node
/// sends it to the new one, which runs it before the slot is its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_on_one_key_is_made_while_the_slot_moves() {
    let cluster = Cluster::start(2).await;
    let queue = open(&cluster.url("zset")).await;
    push(&*queue, "job").await;
    cluster.begin_move(0, 1);
    cluster.move_keys(0, 1);

    queue.pause().await.unwrap();

    assert!(has_refused(&cluster.0[0], "ASK"), "the pause was asked of the old node");
    cluster.end_move(1);
    assert!(queue.stats().await.unwrap().paused);
}

/// R29, R30: a leader ends after its slot has begun to move, and after the key of its followers
/// or of its result has moved. Its end waits until all keys are at one node, so that its
/// follower is released and its result is kept.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_leader_waits_for_the_keys_that_have_moved() {
    let id = || JobId::new("leader").unwrap();
    for moved_first in ["{emails}:followers", "{emails}:results"] {
        let cluster = Cluster::start(2).await;
        let queue = open(&cluster.url("zset")).await;
        let ask = ClaimRequest::new(WorkerId::new("worker").unwrap(), LIMIT);
        let take = async || queue.claim_one(&ask).await.unwrap().unwrap().receipt;
        queue.push(&["done".into(), "dead".into()], None).await.unwrap();
        queue.ack(&take().await).await.unwrap();
        queue.bury(&take().await, "no").await.unwrap();
        // With these, the queue has all keys that the script for the end of a job names.
        let key = UniqueKey::new("key").unwrap();
        let jobs = [
            NewJob::new("unique").unique(key).delay(LIMIT),
            NewJob::new("leads").id(id()).keep_result(LIMIT),
            NewJob::new("follows").after(id()),
        ];
        queue.push(&jobs, None).await.unwrap();
        let leads = take().await;
        cluster.begin_move(0, 1);
        cluster.move_key(0, 1, moved_first);

        let moving = async {
            eventually("the call was told to wait", || {
                let errors = |node: &Node| node.ask(&["INFO", "errorstats"]);
                cluster.0.iter().any(|node| errors(node).contains("TRYAGAIN"))
            })
            .await;
            cluster.move_keys(0, 1);
            cluster.end_move(1);
        };
        let (settled, ()) = tokio::join!(queue.ack(&leads), moving);

        assert_eq!(settled.unwrap(), Settled::Applied, "{moved_first}");
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.ready, stats.scheduled), (1, 1), "R30: {moved_first}");
        let results = queue.result_queue().unwrap();
        let told = results.read_results(&[id()]).await.unwrap();
        let done = JobResult::Done { result: Bytes::new() };
        assert_eq!(told, [Some(done)], "R29: {moved_first}");
    }
}

/// A waiting claim gets a job that is pushed after its slot has moved.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_claim_follows_the_slot() {
    let cluster = Cluster::start(2).await;
    let (producer, worker) =
        (open(&cluster.url("zset")).await, open(&cluster.url("zset")).await);
    push(&*producer, "first").await;
    drain(&*worker, 1).await;
    let waiting = tokio::spawn(async move { drain(&*worker, 1).await });
    eventually("the claim waits", || {
        cluster.0[0].ask(&["INFO", "clients"]).contains("blocked_clients:2")
    })
    .await;

    cluster.begin_move(0, 1);
    cluster.move_keys(0, 1);
    cluster.end_move(1);
    push(&*producer, "second").await;

    assert!(waiting.await.unwrap().contains("second"));
}

/// R1: after the replica of a dead master was promoted, the client uses the queue
/// there. It knows the replica from the answer of another node.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_served_by_the_promoted_replica() {
    let mut cluster = Cluster::start(3).await;
    let replica = Node::in_a_cluster();
    cluster.meet(&replica);
    let master = id(&cluster.0[0]);
    eventually("the replica knows its master", || {
        replica.ask(&["CLUSTER", "REPLICATE", &master]) == "+OK\r\n"
    })
    .await;
    eventually("all nodes know the replica, and it knows them", || {
        let of_master = format!("slave {master}");
        let nodes = cluster.0.iter().map(|node| node.ask(&["CLUSTER", "NODES"]));
        let info = replica.ask(&["CLUSTER", "INFO"]);
        nodes.into_iter().all(|known| known.contains(&of_master))
            && info.contains("cluster_known_nodes:4")
    })
    .await;
    let queue = open(&cluster.url("zset")).await;
    push(&*queue, "before").await;
    eventually("the replica has the job", || {
        let info = replica.ask(&["INFO", "replication"]);
        info.contains("master_link_status:up")
            && replica.ask(&["DBSIZE"]) == cluster.0[0].ask(&["DBSIZE"])
    })
    .await;

    cluster.0[0].kill();
    push(&*queue, "after").await;

    let done = drain(&*queue, 2).await;
    assert_eq!(done.into_iter().collect::<Vec<_>>(), ["after", "before"]);
}

/// A completion for a queue in another slot is pushed to the node of that slot (B5).
#[tokio::test(flavor = "multi_thread")]
async fn a_completion_reaches_a_queue_on_another_node() {
    use relq::batch::{BatchId, NewBatch, OnComplete};

    let cluster = Cluster::start(2).await;
    let url = cluster.url("stream");
    let queue = open(&url).await;
    // The slot of `foo` is 12182, on the second node.
    let elsewhere = relq::QueueName::new("foo").unwrap();
    let completion = OnComplete::new(NewJob::new("join")).queue(elsewhere.clone());
    let id = BatchId::new("nightly").unwrap();
    let batch = NewBatch::new(id.clone()).on_complete(completion);
    let batches = queue.batch_queue().unwrap();

    batches.create(&batch).await.unwrap();
    batches.seal(&id).await.unwrap();

    let there = relq::connect(&url, &elsewhere).await.unwrap();
    assert_eq!(drain(&*there, 1).await.into_iter().collect::<Vec<_>>(), ["join"]);
}

/// The wrong kind of URL is refused, and the error names the right one.
#[tokio::test]
async fn the_error_names_the_right_url() {
    let cluster = Cluster::start(2).await;
    let server = Server::start_on_tcp();

    let plain = server.url().replace("redis://", "redis-cluster://");
    let plain = refusal(&plain).await;
    let node = refusal(&format!("redis://{}", cluster.0[1].address())).await;
    let keyspace = refusal(&cluster.url("keyspace")).await;
    let dead = refusal("redis-cluster://127.0.0.1:1,127.0.0.1:2").await;

    assert!(
        plain.contains("is not a node of a Redis Cluster: use redis://"),
        "{plain}"
    );
    assert!(node.contains("redis-cluster://HOST:PORT"), "{node}");
    assert!(keyspace.contains("a whole database on one server"), "{keyspace}");
    assert!(dead.contains("unavailable"), "{dead}");
}

/// The queues of all masters are listed, each once, with the URL of the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn the_queues_of_all_masters_are_listed() {
    let cluster = Cluster::start(3).await;
    let url = cluster.url("zset");
    let names: BTreeSet<_> = (0..20).map(|number| format!("queue-{number}")).collect();
    for name in &names {
        let queue = QueueName::new(name.clone()).unwrap();
        let queue = relq::connect(&url, &queue).await.unwrap();
        queue.push_one("job".into()).await.unwrap();
    }

    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = relq::store::queues(&url, after.as_ref()).await.unwrap();
        found.extend(page.queues);
        after = page.next;
        if after.is_none() {
            break;
        }
    }

    let listed: Vec<_> = found.iter().map(|queue| queue.name.to_string()).collect();
    assert_eq!(listed.len(), names.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), names);
    for node in &cluster.0 {
        assert_ne!(node.ask(&["DBSIZE"]), ":0\r\n", "each master has queues");
    }
    for queue in &found {
        let open = relq::store::open(&url, queue).await.unwrap();
        assert_eq!(open.stats().await.unwrap().ready, 1);
        assert_eq!(queue.url.as_deref(), Some(&*url));
    }
}
