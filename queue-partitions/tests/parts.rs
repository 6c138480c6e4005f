//! A queue of three parts: where jobs go, how claims share the parts, and what happens
//! when a part fails.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};

use relq_conformance::{
    assert_within, async_trait,
    overrides::{OverriddenQueue, Override, Right},
    server::Server,
};
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Operator as _,
    PushToken, Queue, QueueName, ReliableQueue as _, ReliableQueueExt as _, Settlement,
    WorkerId,
    capabilities::{Capabilities, Capability},
    environment::Environment,
    error::Effect,
    operator::{Cancelled, JobParts, JobState, Page, PeekRequest, Selection},
    outcome::{Extended, Pushed, Settled},
    results::MAX_RESULT,
    unique::UniqueKey,
};
use relq_memory::MemoryStore;
use relq_partitions::PartitionedQueue;
use relq_zset::ZsetConfig;
use tokio::time::{Instant, sleep, timeout};

const LEASE: Duration = Duration::from_secs(30);

/// The time limit for a claim that a notification wakes. Without a notification, a waiting
/// claim looks again only after 2 s, and it begins to wait up to 0.5 s before the
/// notification.
const WOKEN: Duration = Duration::from_secs(1);

fn name(part: usize) -> QueueName {
    QueueName::new(format!("emails:{part}")).unwrap()
}

/// Opens a queue whose parts are on these servers, in turn.
async fn on(servers: &[Server], parts: usize) -> PartitionedQueue {
    let mut opened: Vec<Arc<dyn Queue>> = Vec::new();
    for part in 0..parts {
        let config = ZsetConfig::new(&servers[part % servers.len()].url()).unwrap();
        opened.push(relq_zset::connect(config, name(part)).await.unwrap());
    }
    PartitionedQueue::new(opened, Environment::default()).unwrap()
}

/// Opens a queue of this number of parts in memory.
fn in_memory(parts: usize) -> PartitionedQueue {
    let store = MemoryStore::default();
    let part = |part| Arc::new(store.open(name(part), Environment::default())) as _;
    let parts: Vec<Arc<dyn Queue>> = (0..parts).map(part).collect();
    PartitionedQueue::new(parts, Environment::default()).unwrap()
}

fn ask(max: u32) -> ClaimRequest {
    let worker = WorkerId::new("worker").unwrap();
    ClaimRequest::new(worker, LEASE).max(NonZeroU32::new(max).unwrap())
}

fn with_id(id: &str) -> NewJob {
    NewJob::new("job").id(JobId::new(id).unwrap())
}

/// Two ids that belong to different parts.
fn ids_that_lead_apart(queue: &PartitionedQueue) -> (String, String) {
    let part = |id: &str| queue.part_of().text(id);
    let other = (0..).map(|number| format!("id-{number}"));
    let mut other = other.filter(|id| part(id) != part("id-0"));
    ("id-0".to_owned(), other.next().unwrap())
}

async fn ready(queue: &PartitionedQueue) -> Vec<u64> {
    queue.stats_by_part().await.unwrap().iter().map(|part| part.ready).collect()
}

fn done(jobs: &[Delivery]) -> Vec<Settlement> {
    let settle =
        |job: &Delivery| Settlement::new(job.receipt.clone(), Disposition::Done);
    jobs.iter().map(settle).collect()
}

/// R4, R16: ids and unique keys hold for the whole queue, and their jobs are in several
/// parts.
#[tokio::test]
async fn ids_and_keys_are_known_in_the_whole_queue() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await;
    let keyed = |number: u32| {
        NewJob::new("job").unique(UniqueKey::new(format!("key-{number}")).unwrap())
    };
    for number in 0..20 {
        for job in [with_id(&format!("id-{number}")), keyed(number)] {
            let first = queue.push(std::slice::from_ref(&job), None).await.unwrap();
            let again = queue.push(&[job], None).await.unwrap();

            assert!(matches!(first[..], [Pushed::Stored(_)]), "{first:?}");
            assert!(matches!(again[..], [Pushed::Duplicate { .. }]), "{again:?}");
        }
    }
    let ready = ready(&queue).await;
    assert_eq!(ready.iter().sum::<u64>(), 40);
    assert!(ready.iter().all(|jobs| *jobs > 0), "{ready:?}");
}

/// R4: a call with a token can be repeated.
#[tokio::test]
async fn a_call_with_a_token_is_repeated_at_the_same_part() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await;
    for number in 0..10 {
        let token = PushToken::new(format!("call-{number}")).unwrap();
        let first = queue.push(&["1".into(), "2".into()], Some(&token)).await.unwrap();
        let again = queue.push(&["1".into(), "2".into()], Some(&token)).await.unwrap();

        assert_eq!(first, again);
    }
    assert_eq!(queue.stats().await.unwrap().ready, 20);
}

/// R5: a call whose ids lead to different parts is refused, and nothing is stored.
#[tokio::test]
async fn a_call_that_leads_apart_is_refused() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await;
    let (one, other) = ids_that_lead_apart(&queue);

    let refused = queue.push(&[with_id(&one), with_id(&other)], None).await;

    let error = refused.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    assert!(error.to_string().contains("push such jobs by calls of their own"));
    assert_eq!(queue.stats().await.unwrap().ready, 0);
}

/// Any number of jobs with ids are pushed by calls of one part each, in their order.
#[tokio::test]
async fn many_jobs_are_divided_by_the_parts_of_their_ids() {
    let queue = in_memory(3);
    let ids: Vec<_> = (0..30).map(|number| format!("id-{number}")).collect();
    let jobs: Vec<_> = ids.iter().map(|id| with_id(id)).collect();

    let pushed = queue.push_all(&jobs).await.unwrap();

    let stored: Vec<_> = pushed.iter().map(|one| one.job().as_str()).collect();
    assert_eq!(stored, ids);
    let ready = ready(&queue).await;
    assert_eq!(ready.iter().sum::<u64>(), 30);
    assert!(ready.iter().all(|jobs| *jobs > 0), "{ready:?}");
}

/// A job whose id and key lead apart fails alone: the jobs before it are stored.
#[tokio::test]
async fn a_job_that_leads_apart_fails_alone() {
    let queue = in_memory(3);
    let (one, other) = ids_that_lead_apart(&queue);
    let apart = with_id(&one).unique(UniqueKey::new(other).unwrap());

    let failed = queue.push_all(&[with_id("first"), apart.clone()]).await;

    let (error, stored) = failed.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    assert_eq!(stored, 1);
    assert!(matches!(queue.part_of_job(&apart), Err(Error::Invalid { .. })));
    let part = queue.part_of().text(&one);
    assert_eq!(queue.part_of_job(&with_id(&one)).unwrap(), Some(part));
    assert_eq!(queue.part_of_job(&"plain".into()).unwrap(), None);
}

/// Calls without ids, keys and tokens go to the parts in turn, each to one part.
#[tokio::test]
async fn plain_calls_go_in_turn() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await;

    for _ in 0..12 {
        queue.push(&["1".into(), "2".into()], None).await.unwrap();
    }

    assert_eq!(ready(&queue).await, [8, 8, 8]);
}

/// The order of the settings does not matter: a hash chooses among the parts that are pushed
/// to.
#[tokio::test]
async fn a_hash_leads_to_no_part_that_is_not_pushed_to() {
    for queue in [
        in_memory(3).hash(|_| 5).push_to(2).unwrap(),
        in_memory(3).push_to(2).unwrap().hash(|_| 5),
    ] {
        for number in 0..6 {
            queue.push(&[with_id(&number.to_string())], None).await.unwrap();
        }

        assert_eq!(ready(&queue).await, [0, 6, 0]);
    }
}

/// Another handle pushes to the same parts, by the same hash.
#[tokio::test]
async fn another_handle_pushes_to_the_same_parts() {
    let queue = in_memory(3).hash(|_| 1).push_to(2).unwrap();
    let another = queue.open_another().await.unwrap();

    for number in 0..50 {
        another.push(&["job".into()], None).await.unwrap();
        another.push(&[with_id(&number.to_string())], None).await.unwrap();
    }

    assert_eq!(ready(&queue).await, [25, 75, 0]);
}

/// The time to the next due job is that of the part whose job is due first, whichever part
/// that is.
#[tokio::test]
async fn the_next_due_job_is_that_of_any_part() {
    let hour = Duration::from_secs(60 * 60);
    for hours in [[1, 2], [2, 1]] {
        let queue = in_memory(3);
        for (part, hours) in queue.parts().iter().zip(hours) {
            part.push(&[NewJob::new("job").delay(hour * hours)], None).await.unwrap();
        }

        let stats = queue.stats().await.unwrap();
        let recovered = queue.recover(NonZeroU32::new(9).unwrap()).await.unwrap();

        for next in [stats.next_due_in, recovered.next_in] {
            let next = next.unwrap();
            assert!(next > hour / 2 && next <= hour, "{hours:?}: {next:?}");
        }
    }
}

/// While every part has jobs, each serves a third of 10,000 jobs, within 5 %, whether
/// the worker has one slot or several.
#[tokio::test]
async fn parts_with_jobs_have_equal_shares() {
    for slots in [1, 8] {
        let queue = in_memory(3);
        for (part, own) in queue.parts().iter().enumerate() {
            let jobs = (0..4500).map(|_| NewJob::new(part.to_string()));
            let jobs: Vec<_> = jobs.collect();
            for page in jobs.chunks(900) {
                own.push(page, None).await.unwrap();
            }
        }
        let (mut held, mut served) = (Vec::new(), BTreeMap::<_, u32>::new());

        while served.values().sum::<u32>() < 10_000 {
            let both = queue.settle_and_claim(&done(&held), &ask(slots)).await;
            both.settled.unwrap();
            held = both.claimed.unwrap();
            assert_eq!(held.len(), slots as usize);
            for job in &held {
                *served.entry(job.payload.clone()).or_default() += 1;
            }
        }

        let is_a_third = |jobs: &u32| (3167..=3500).contains(jobs);
        assert!(served.values().all(is_a_third), "{slots} slots: {served:?}");
    }
}

/// So do claims without settlements, however few jobs each of them takes.
#[tokio::test]
async fn claims_alone_give_the_parts_equal_shares() {
    for slots in [1, 8] {
        let queue = in_memory(3);
        for (part, own) in queue.parts().iter().enumerate() {
            let jobs: Vec<_> =
                (0..200).map(|_| NewJob::new(part.to_string())).collect();
            own.push(&jobs, None).await.unwrap();
        }
        let mut served = BTreeMap::<_, u32>::new();

        while served.values().sum::<u32>() < 240 {
            for job in queue.claim(&ask(slots)).await.unwrap() {
                *served.entry(job.payload.clone()).or_default() += 1;
            }
        }

        let is_a_third = |jobs: &u32| (70..=90).contains(jobs);
        assert!(served.values().all(is_a_third), "{slots} slots: {served:?}");
        assert_eq!(served.len(), 3);
    }
}

/// A queue has the calls of exactly the options that it announces.
#[test]
fn a_queue_has_the_calls_of_its_options() {
    for parts in [1, 2] {
        let queue = in_memory(parts);
        let calls = [
            (Capability::Batches, queue.batch_queue().is_some()),
            (Capability::Schedules, queue.schedule_queue().is_some()),
            (Capability::Results, queue.result_queue().is_some()),
            (Capability::Inspect, queue.inspect_queue().is_some()),
            (Capability::Restore, queue.restore_queue().is_some()),
        ];
        for (option, has_calls) in calls {
            let is_announced = queue.capabilities().supports(option);
            assert_eq!(is_announced, has_calls, "{parts} parts: {option:?}");
        }
    }
}

/// A part with these options.
struct WithOptions(Capabilities);

impl Override for WithOptions {
    fn capabilities<'a>(&'a self, _: &'a Right) -> &'a Capabilities {
        &self.0
    }
}

/// A part that differs from the others is refused, whichever part it is: a call would be
/// checked by the options of part 0.
#[test]
fn parts_with_different_options_are_refused() {
    let of_memory = in_memory(1).parts()[0].capabilities().clone();
    let others = of_memory.supported.iter().copied();
    let without_delay = Capabilities {
        supported: others.filter(|option| *option != Capability::Delay).collect(),
        ..of_memory.clone()
    };
    for (different, count) in [(0, 2), (1, 2), (1, 3), (2, 3)] {
        let mut parts = in_memory(count).parts().to_vec();
        let environment = Environment::default();
        let right = Right { queue: Arc::clone(&parts[different]), environment };
        let options = Arc::new(WithOptions(without_delay.clone()));
        parts[different] = Arc::new(OverriddenQueue::new(right, options));

        let refused = PartitionedQueue::new(parts, Environment::default());

        let what = format!("part {different} of {count} has no delays");
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{what}: {refused:?}");
    }
}

/// R7: settlements and heartbeats of jobs of several parts are answered in the order of
/// the call, and a lost lease does not affect the others.
#[tokio::test]
async fn receipts_lead_back_to_their_parts() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await;
    for _ in 0..3 {
        queue.push(&["1".into(), "2".into()], None).await.unwrap();
    }
    let jobs = queue.claim(&ask(10)).await.unwrap();
    assert_eq!(jobs.len(), 6);
    let settled = queue.settle(&done(&jobs[2..3])).await.unwrap();
    assert_eq!(settled, [Settled::Applied]);
    let held: Vec<_> = jobs.iter().map(|job| job.receipt.clone()).collect();

    let extended = queue.extend(&ask(1).worker, &held, LEASE).await.unwrap();
    let settled = queue.settle(&done(&jobs)).await.unwrap();

    for at in 0..6 {
        let is_lost = at == 2;
        assert_eq!(extended[at] == Extended::LeaseLost, is_lost, "{extended:?}");
        assert_eq!(settled[at] == Settled::LeaseLost, is_lost, "{settled:?}");
    }
    assert_eq!(queue.stats().await.unwrap().finished, 6);
}

/// A call with a result that is too large is refused before any part settles.
#[tokio::test]
async fn a_result_that_is_too_large_refuses_the_settlements_of_all_parts() {
    let queue = in_memory(2);
    for part in queue.parts() {
        part.push(&["job".into()], None).await.unwrap();
    }
    let mut settlements = done(&queue.claim(&ask(2)).await.unwrap());
    let result = vec![0; MAX_RESULT + 1].into();
    settlements[0].disposition = Disposition::DoneWith { result };

    let settled = queue.settle(&settlements).await;
    let beside_claim = queue.settle_and_claim(&settlements, &ask(1)).await.settled;

    for refused in [settled, beside_claim] {
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
    assert_eq!(queue.stats().await.unwrap().leased, 2);
}

/// A push to any part wakes a claim that waits on all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_to_any_part_wakes_a_waiting_claim() {
    let servers = [Server::start()];
    let queue = Arc::new(on(&servers, 3).await);
    for part in 0..3 {
        assert_within(WOKEN, async || {
            let waiting = Arc::clone(&queue);
            let asked = ask(1).wait(Duration::from_secs(20));
            let claim = tokio::spawn(async move { waiting.claim(&asked).await });
            tokio::time::sleep(Duration::from_millis(300)).await;
            let began = Instant::now();

            queue.parts()[part].push(&["job".into()], None).await.unwrap();

            assert_eq!(claim.await.unwrap().unwrap().len(), 1, "part {part}");
            began.elapsed()
        })
        .await;
    }
}

/// A claim that waits through a pause finds nothing, and the resume wakes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_resume_wakes_a_waiting_claim() {
    assert_within(WOKEN, async || {
        let servers = [Server::start()];
        let queue = Arc::new(on(&servers, 3).await);
        queue.push(&["job".into()], None).await.unwrap();
        queue.pause().await.unwrap();
        assert!(queue.stats().await.unwrap().paused);
        let waiting = Arc::clone(&queue);
        let asked = ask(1).wait(Duration::from_secs(20));
        let claim = tokio::spawn(async move { waiting.claim(&asked).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!claim.is_finished());
        let began = Instant::now();

        queue.resume().await.unwrap();

        assert_eq!(claim.await.unwrap().unwrap().len(), 1);
        began.elapsed()
    })
    .await;
}

/// The number of scripts that clients have run on the server.
fn scripts_run(server: &Server) -> u64 {
    let stats = server.command(&[b"INFO", b"commandstats"]);
    let stats = String::from_utf8(stats).unwrap();
    let calls = stats.lines().filter_map(|line| {
        let rest = line.strip_prefix("cmdstat_evalsha:calls=")?;
        rest.split(',').next()?.parse::<u64>().ok()
    });
    calls.sum()
}

/// A claim that waits on three parts looks at each only every two seconds, also while the
/// queue is paused and has jobs.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_claim_does_not_poll() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await;
    for is_paused in [false, true] {
        if is_paused {
            queue.pause().await.unwrap();
            queue.push(&["job".into()], None).await.unwrap();
        }
        let before = scripts_run(&servers[0]);

        let jobs = queue.claim(&ask(1).wait(Duration::from_secs(3))).await.unwrap();

        assert_eq!(jobs.len(), 0);
        let scripts = scripts_run(&servers[0]) - before;
        // A look before the wait, one that notices the pause, one after two seconds, and
        // one at the end. A claim that polls would run hundreds of scripts.
        assert!(scripts <= 20, "{scripts} scripts, paused: {is_paused}");
    }
}

/// R6: a claim takes at most 1 MiB from all parts together. The jobs that it leaves
/// behind were not delivered.
#[tokio::test]
async fn a_claim_of_several_parts_keeps_to_its_bytes() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await.starting_at(0);
    // Less than half of the limit, so that the claim goes on to the next part, whose job
    // exceeds the limit by its headers alone.
    let large = NewJob::new(vec![7; 570 << 10]).header("k", "x".repeat(60 << 10));
    for part in queue.parts() {
        part.push(&[vec![7; 450 << 10].into()], None).await.unwrap();
        part.push(std::slice::from_ref(&large), None).await.unwrap();
    }
    let mut bytes = Vec::new();
    loop {
        let jobs = queue.claim(&ask(1)).await.unwrap();
        let more = queue.claim(&ask(6)).await.unwrap();
        if jobs.is_empty() && more.is_empty() {
            break;
        }
        for jobs in [jobs, more] {
            let total: usize = jobs.iter().map(Delivery::total_bytes).sum();
            assert!(total <= ClaimRequest::MAX_BYTES, "{total}");
            assert!(jobs.iter().all(|job| job.attempt() == 1));
            bytes.push(total);
        }
    }
    let all = 3 * ((450 << 10) + large.total_bytes());
    assert_eq!(bytes.iter().sum::<usize>(), all);
}

/// R24: the jobs beyond 1 MiB go back to their part, in their order.
#[tokio::test]
async fn the_jobs_that_a_claim_gives_back_keep_their_order() {
    let servers = [Server::start()];
    let queue = on(&servers, 2).await.starting_at(0);
    let job = |kib: usize, number: u8| NewJob::new(vec![number; kib << 10]);
    queue.parts()[0].push(&[job(400, 99)], None).await.unwrap();
    let of_part_1: Vec<_> = (0..10).map(|number| job(100, number)).collect();
    queue.parts()[1].push(&of_part_1, None).await.unwrap();

    let mut served = Vec::new();
    while served.len() < 11 {
        let jobs = queue.claim(&ask(20)).await.unwrap();
        assert!(!jobs.is_empty(), "{served:?}");
        served.extend(jobs.iter().map(|job| job.payload[0]));
    }

    served.retain(|number| *number != 99);
    assert!(served.is_sorted(), "{served:?}");
}

/// An operator sees and changes the jobs of all parts as those of one queue.
#[tokio::test]
async fn an_operator_sees_one_queue() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await;
    let mut ids = Vec::new();
    for number in 0..9 {
        let pushed = queue.push(&[number.to_string().into()], None).await.unwrap();
        ids.push(pushed[0].job().clone());
    }
    for limit in [1, 2, 4, 100] {
        let mut request =
            PeekRequest::new(JobState::Ready, NonZeroU32::new(limit).unwrap());
        let mut seen = Vec::new();
        loop {
            let page = queue.peek(&request).await.unwrap();
            assert!(page.jobs.len() <= limit as usize);
            seen.extend(page.jobs.into_iter().filter_map(|job| job.id));
            let Some(next) = page.next else { break };
            request = request.after(next);
        }
        seen.sort();
        let mut all = ids.clone();
        all.sort();
        assert_eq!(seen, all, "pages of {limit}");
    }
    let removed = Cancelled::Removed(JobState::Ready);
    assert_eq!(queue.cancel(&ids[4]).await.unwrap(), removed);
    assert_eq!(queue.cancel(&ids[4]).await.unwrap(), Cancelled::NotFound);

    let jobs = queue.claim(&ask(10)).await.unwrap();
    let dead = Disposition::Dead { error: "no".to_owned() };
    let buried =
        jobs.iter().map(|job| Settlement::new(job.receipt.clone(), dead.clone()));
    queue.settle(&buried.collect::<Vec<_>>()).await.unwrap();
    let some = Selection::Only(ids[..2].to_vec());
    assert_eq!(queue.redrive(&some).await.unwrap().moved, 2);
    assert_eq!(queue.purge_dead(&Selection::All).await.unwrap(), 6);
    assert_eq!(queue.audit().await.unwrap().problems, Vec::<String>::new());
    assert_eq!(queue.purge().await.unwrap(), 2);
}

/// R23: an audit reports the problems of each part, with the number of the part, also if the
/// parts after it have none.
#[tokio::test]
async fn an_audit_reports_the_problems_of_each_part() {
    let servers = [Server::start()];
    let queue = on(&servers, 3).await;
    queue.parts()[0].push(&["job".into()], None).await.unwrap();
    assert_eq!(queue.claim(&ask(1)).await.unwrap().len(), 1);
    assert_eq!(servers[0].command(&[b"DEL", b"{emails:0}:leased"]), b":1\r\n");

    let problems = queue.audit().await.unwrap().problems;

    assert!(problems.iter().any(|it| it.starts_with("part 0: ")), "{problems:?}");
}

/// While a node is down, jobs of the others are pushed, claimed and settled. A call that
/// needs the dead node says so. When the node is back, its jobs are claimed.
#[tokio::test(flavor = "multi_thread")]
async fn the_others_go_on_while_a_node_is_down() {
    let mut servers = [Server::start(), Server::start(), Server::start()];
    let queue = on(&servers, 3).await;
    for part in queue.parts() {
        part.push(&["before".into()], None).await.unwrap();
    }
    let held = queue.claim(&ask(3)).await.unwrap();
    assert_eq!(held.len(), 3);
    servers[1].kill();

    let error = queue.settle(&done(&held)).await.unwrap_err();
    assert_eq!(error.effect(), Effect::Maybe, "{}", error.full_message());
    for _ in 0..9 {
        queue.push(&["meanwhile".into()], None).await.unwrap();
    }
    let mut taken = 0;
    while taken < 9 {
        let asked = ask(2).wait(Duration::from_secs(10));
        let jobs = queue.claim(&asked).await.unwrap();
        assert!(!jobs.is_empty(), "{taken} of 9 jobs");
        taken += jobs.len();
        queue.settle(&done(&jobs)).await.unwrap();
    }
    assert_eq!(queue.stats().await.unwrap_err().effect(), Effect::No);

    servers[1].restart();
    let back = queue.parts()[1].push(&["back".into()], None).await;
    back.unwrap();
    let jobs = queue.claim(&ask(1).wait(Duration::from_secs(20))).await.unwrap();
    assert_eq!(&jobs[0].payload[..], b"back");
}

/// Pushes a job to each part, whose payload is the number of the part, and claims all.
/// Returns the worker and its jobs.
async fn one_lease_each(queue: &PartitionedQueue) -> (WorkerId, Vec<Delivery>) {
    for (number, part) in queue.parts().iter().enumerate() {
        part.push(&[NewJob::new(number.to_string())], None).await.unwrap();
    }
    let all = u32::try_from(queue.parts().len()).unwrap();
    (WorkerId::new("worker").unwrap(), queue.claim(&ask(all)).await.unwrap())
}

/// Asserts that a heartbeat has kept the lease of part 0, and that it does not know of the
/// others.
fn only_the_first_is_kept(jobs: &[Delivery], extended: &[Extended]) {
    assert_eq!(jobs.len(), extended.len());
    for (job, extended) in jobs.iter().zip(extended) {
        let is_kept = matches!(extended, Extended::Until(_));
        assert!(is_kept || *extended == Extended::Unknown, "{extended:?}");
        assert_eq!(is_kept, &job.payload[..] == b"0", "{extended:?}");
    }
}

/// R10: while a node is down, a heartbeat keeps the leases on the other nodes, and its
/// results for the leases on the dead node are `Unknown`. If no node answers, the heartbeat
/// fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_keeps_the_leases_of_the_other_nodes() {
    let mut servers = [Server::start(), Server::start()];
    let queue = on(&servers, 2).await;
    let (worker, jobs) = one_lease_each(&queue).await;
    let held: Vec<_> = jobs.iter().map(|job| job.receipt.clone()).collect();

    servers[1].kill();
    let extended = queue.extend(&worker, &held, LEASE).await.unwrap();
    only_the_first_is_kept(&jobs, &extended);

    servers[0].kill();
    let error = queue.extend(&worker, &held, LEASE).await.unwrap_err();
    assert!(error.full_message().contains("extend"), "{}", error.full_message());
}

/// The requests for pages that a part has received.
#[derive(Default)]
struct PagesOfPart(Arc<Mutex<Vec<PeekRequest>>>);

#[async_trait]
impl Override for PagesOfPart {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        self.0.lock().unwrap().push(ask.clone());
        right.peek(ask).await
    }
}

/// Each part is asked for what the caller has asked for: without the payloads, for example.
#[tokio::test]
async fn a_part_is_asked_for_the_parts_of_jobs_that_are_needed() {
    let asked = PagesOfPart::default();
    let seen = Arc::clone(&asked.0);
    let environment = Environment::default();
    let name = QueueName::new("emails").unwrap();
    let healthy = Arc::new(MemoryStore::default().open(name, environment.clone()));
    let right = Right { queue: healthy, environment: environment.clone() };
    let part: Arc<dyn Queue> = Arc::new(OverriddenQueue::new(right, Arc::new(asked)));
    let queue = PartitionedQueue::new(vec![part], environment).unwrap();
    let page = NonZeroU32::new(7).unwrap();
    for parts in [JobParts::Whole, JobParts::Outline] {
        let mut ask = PeekRequest::new(JobState::Dead, page);
        ask.parts = parts;

        queue.peek(&ask).await.unwrap();

        assert_eq!(seen.lock().unwrap().pop(), Some(ask));
    }
}

/// R10: a node that takes no writes, such as a replica that is not promoted yet, does not
/// cost the worker its leases on the other nodes. The recovery of the others goes on, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_keeps_leases_beside_a_node_that_takes_no_writes() {
    let servers = [Server::start(), Server::start()];
    let queue = on(&servers, 2).await;
    let (worker, jobs) = one_lease_each(&queue).await;
    let held: Vec<_> = jobs.iter().map(|job| job.receipt.clone()).collect();

    servers[1].command(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    let extended = queue.extend(&worker, &held, Duration::from_millis(1)).await;

    only_the_first_is_kept(&jobs, &extended.unwrap());
    let recovered = async {
        while queue.recover(NonZeroU32::MAX).await.map_or(0, |page| page.requeued) == 0
        {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let limit = Duration::from_secs(10);
    timeout(limit, recovered)
        .await
        .expect("R17: the job of the other node is recovered");
}

/// R10: a node that is silent, and whose connections stay open, does not hold up the
/// heartbeat for the leases on the other nodes until they expire.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_does_not_wait_for_a_silent_node() {
    let servers = [Server::start(), Server::start()];
    let queue = on(&servers, 2).await;
    let (worker, jobs) = one_lease_each(&queue).await;
    let held: Vec<_> = jobs.iter().map(|job| job.receipt.clone()).collect();
    let short = Duration::from_secs(3);

    servers[1].command(&[b"CLIENT", b"PAUSE", b"60000", b"ALL"]);
    let began = Instant::now();
    let extended = queue.extend(&worker, &held, short).await;
    let took = began.elapsed();

    // A call to a silent node fails after five seconds.
    assert!(took < short, "R10: it took {took:?}, and the leases last {short:?}");
    only_the_first_is_kept(&jobs, &extended.unwrap());
}

/// R10: another handle keeps the leases on the other node when the node of part 0 fails
/// before that handle has written. A worker opens such a handle for its heartbeats, before
/// the first write of its own.
#[tokio::test(flavor = "multi_thread")]
async fn another_handle_keeps_leases_without_the_node_of_the_first_part() {
    let mut servers = [Server::start(), Server::start()];
    let queue = on(&servers, 2).await;
    let first = Arc::clone(&queue.parts()[0]);
    let queue = queue.before_first_write(Arc::new(move || {
        let first = Arc::clone(&first);
        Box::pin(async move { first.stats().await.map(drop) })
    }));
    queue.parts()[1].push(&["job".into()], None).await.unwrap();
    let another = queue.open_another().await.unwrap();
    let jobs = queue.claim(&ask(1)).await.unwrap();

    servers[0].kill();
    let held = [jobs[0].receipt.clone()];
    let extended = another.extend(&ask(1).worker, &held, LEASE).await.unwrap();

    assert!(matches!(extended[..], [Extended::Until(_)]), "{extended:?}");
}

/// A claim that does not wait, and finds no job, fails while a part cannot be asked, because
/// that part may have jobs. This also holds when the part is left out after many failures.
#[tokio::test]
async fn a_claim_that_finds_no_job_fails_while_a_node_is_down() {
    let mut servers = [Server::start(), Server::start()];
    let queue = on(&servers, 2).await;
    assert_eq!(queue.claim(&ask(1)).await.unwrap(), []);
    servers[1].kill();

    for _ in 0..10 {
        let error = queue.claim(&ask(1)).await.unwrap_err();
        let is_outage =
            matches!(error, Error::Unavailable { .. } | Error::Interrupted { .. });
        assert!(is_outage, "{}", error.full_message());
    }

    queue.parts()[0].push(&["job".into()], None).await.unwrap();
    assert_eq!(queue.claim(&ask(1)).await.unwrap().len(), 1);
}

/// A claim fails if no part can be reached.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_fails_if_every_node_is_down() {
    let mut servers = [Server::start(), Server::start()];
    let queue = on(&servers, 2).await;
    servers.iter_mut().for_each(Server::kill);

    // Also when the parts are left out, because so many of their calls have failed.
    for _ in 0..8 {
        let claimed = queue.claim(&ask(1).wait(Duration::from_secs(5))).await;
        let error = claimed.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. } | Error::Interrupted { .. }));
    }
}
