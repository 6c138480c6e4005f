//! `relq work` on several queues.

use std::{collections::BTreeMap, fs, thread, time::Duration};

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

/// Pushes this many jobs, whose payloads are the numbers from 0.
fn push_many(store: &Store, queue: &str, jobs: u32) {
    let lines: String = (0..jobs).map(|n| format!("{n}\n")).collect();
    store.relq(&format!("push --quiet -q {queue} --file -")).input(lines).ok();
}

/// Reads how often each line is in the file that the commands wrote.
fn lines(store: &Store, file: &str) -> Vec<String> {
    let text = fs::read_to_string(store.file(file)).unwrap();
    text.lines().map(str::to_owned).collect()
}

on_each_store! {
    fn a_command_gets_the_queue_of_its_job(store) {
        store.push("-q letters a");
        store.push("-q reports=2 b");
        let line = ["work", "--serve", "letters=3", "--serve", "reports=2=1",
            "--until-empty", "--exec", "sh", "-c", "echo \"$(cat) $RELQ_QUEUE\""];
        let out = store.relq_with(&line).ok();
        let mut said: Vec<_> = out.lines().collect();
        said.sort_unstable();
        assert_eq!(said, ["a letters", "b reports=2"]);
    }

    /// Also if the worker serves one queue, and its environment names another.
    fn a_command_gets_the_only_queue_that_is_served(store) {
        store.push("-q letters a");
        let line = ["work", "--serve", "letters", "--until-empty", "--exec", "sh", "-c",
            "echo \"$(cat) $RELQ_QUEUE\""];
        assert_eq!(store.relq_with(&line).env("RELQ_QUEUE", "other").ok(), "a letters\n");
    }

    /// If a claim on the first queue takes too long, the worker also claims from the second
    /// one. This can happen on a machine that stands still, but not in each of three rounds.
    fn strict_order_serves_the_first_queue_first(store) {
        let line = ["work", "--serve", "first", "--serve", "second", "--strict",
            "--concurrency", "1", "--until-empty", "--exec", "sh", "-c",
            "echo $RELQ_QUEUE"];
        let wanted = "first\n".repeat(5) + &"second\n".repeat(5);
        let mut served = Vec::new();
        while served.len() < 3 && !served.contains(&wanted) {
            push_many(store, "second", 5);
            push_many(store, "first", 5);
            served.push(store.relq_with(&line).ok());
        }
        assert!(served.contains(&wanted), "{served:?}");
    }

    /// While both queues have jobs, three of four jobs that start are of the first. With
    /// equal weights it would be 20 of 40, in strict order 40. If a claim takes too long,
    /// the other queue gets its slot. This can happen on a machine that stands still, but
    /// not in each of three rounds.
    fn queues_are_served_in_proportion_to_their_weights(store) {
        let line = ["work", "--serve", "heavy=3", "--serve", "light",
            "--concurrency", "1", "--until-empty", "--exec", "sh", "-c",
            "echo $RELQ_QUEUE"];
        let mut heavy = Vec::new();
        while heavy.len() < 3 && !heavy.iter().any(|jobs| (25..=35).contains(jobs)) {
            push_many(store, "light", 40);
            push_many(store, "heavy", 40);
            let served = store.relq_with(&line).ok();
            let first = served.lines().take(40);
            heavy.push(first.filter(|queue| *queue == "heavy").count());
        }
        assert!(heavy.iter().any(|jobs| (25..=35).contains(jobs)), "{heavy:?}");
    }

    fn the_exit_code_tells_of_all_queues(store) {
        store.push("-q fails --max-attempts 1 job");
        store.push("-q works job");
        let line = "work --serve works --serve fails --until-empty --exec sh -c";
        let mut line: Vec<_> = line.split(' ').collect();
        line.push("test $RELQ_QUEUE = works");
        let ended = store.relq_with(&line).run();
        assert_eq!(ended.code, Some(3), "{}", ended.err);
        assert_eq!(store.count("works", "finished"), 1);
    }

    /// Jobs that are left in any of the queues are told, and dead jobs of one queue that are
    /// purged during the run hide no death in another.
    fn the_exit_code_tells_of_each_queue_by_itself(store) {
        store.push("-q first job");
        store.push("-q second --delay 1h job");
        let line = "work --serve first --serve second --until-empty --exec true";
        let error = store.relq(line).fails(4);
        assert!(error.contains("1 job is left"), "{error}");

        store.relq("purge -q second --yes").ok();
        store.push("-q first --max-attempts 1 old");
        store.relq("work -q first --until-empty --exec false").fails(3);
        store.push("-q first trigger");
        // While the only job runs, the dead job of its queue is purged, and a job of the
        // second queue dies. The worker has no free slot to claim it.
        let script = "cat >/dev/null; $RELQ dead purge -q first --all >/dev/null
            $RELQ push -q second --max-attempts 1 dies >/dev/null
            $RELQ work -q second --until-empty --exec false >/dev/null 2>&1; exit 0";
        let line = ["work", "--serve", "first", "--serve", "second", "--concurrency", "1",
            "--until-empty", "--exec", "sh", "-c", script];
        let error = store.relq_with(&line).env("RELQ", env!("CARGO_BIN_EXE_relq")).fails(3);
        assert!(error.contains("1 job died"), "{error}");
    }

    /// A worker that ends when its queues are empty does not wait for a paused one.
    fn a_worker_of_several_queues_says_that_one_is_paused(store) {
        store.push("-q first job");
        store.push("-q second job");
        store.relq("pause -q second").ok();

        let error = store
            .relq("work --serve first --serve second --until-empty --exec true")
            .fails(1);

        assert!(error.contains("one of the queues first, second is paused"), "{error}");
        assert_eq!(store.count("second", "ready"), 1);
    }

    /// R1, R9: no job of any queue is lost, at whatever moment the worker is killed.
    fn a_worker_killed_at_any_time_loses_no_job_of_any_queue(store) {
        for queue in ["high", "low"] {
            push_many(store, queue, 100);
        }
        let script = "echo $RELQ_QUEUE $(cat) >> done";
        let line = ["work", "--serve", "high=3", "--serve", "low", "--lease", "1s",
            "--exec", "sh", "-c", script];
        for round in 0..6_u64 {
            let mut worker = store.relq_with(&line).start();
            // The delay grows with each round: the first kill comes before the first
            // claim, the last one in the middle of the work.
            thread::sleep(Duration::from_millis(round * round * 5));
            worker.kill();
        }
        let last = [&line[..7], &["--until-empty"], &line[7..]].concat();
        store.relq_with(&last).ok();

        let mut runs = BTreeMap::new();
        for done in lines(store, "done") {
            *runs.entry(done).or_insert(0) += 1;
        }
        assert_eq!(runs.len(), 200, "each job of both queues ran");
        for queue in ["high", "low"] {
            assert_eq!(store.count(queue, "finished"), 100, "{queue}");
            assert_eq!(store.relq(&format!("audit --json -q {queue}")).json()["jobs"], 0);
        }
    }
}

/// A user reads the log at its default level. Without the name of the queue, the lines of a
/// worker and of a scheduler do not say which queue has trouble.
#[test]
fn each_warning_names_its_queue() {
    let mut store = Store::redis();
    for queue in ["first", "second"] {
        store.relq(&format!("cron add poll -q {queue} --every 1s poll")).ok();
    }
    let line = "work --serve first --serve second --lease 2s --schedules -- true";
    let worker = store.relq(line).start();
    for queue in ["first", "second"] {
        wait_until("a tick has run", || store.count(queue, "finished") > 0);
    }

    store.server().kill();

    for what in ["claiming", "recovery", "scheduling"] {
        for queue in ["first", "second"] {
            let (what, queue) =
                (format!("{what} fails"), format!("queue{{name={queue}}}"));
            let is_told = |line: &str| line.contains(&what) && line.contains(&queue);
            wait_until(&what, || worker.errors().lines().any(is_told));
        }
    }
}

/// All queues end with the one that is refused, so only the message can say which it is.
#[test]
fn the_error_that_ends_a_worker_names_its_queue() {
    let mut store = Store::redis();
    // The key of the ready jobs.
    store.server().command(&[b"SET", b"second", b"of another program"]);

    let error = store.relq("work --serve first --serve second -- true").fails(1);

    let last = error.lines().last().unwrap();
    assert!(last.starts_with("relq: the queue second: zset claim: "), "{error}");
}

#[test]
fn a_list_of_queues_that_is_wrong_is_refused() {
    let store = Store::sqlite();
    store.create();
    let refused = |options: &str| {
        store.relq(&format!("work {options} --until-empty --exec cat")).fails(2)
    };
    let weight = refused("--serve mail=0");
    assert!(
        weight.contains("the weight \"0\" is not a whole number from 1"),
        "{weight}"
    );
    let twice = refused("--serve mail --serve mail=2");
    assert!(twice.contains("mail twice"), "{twice}");
    let strict = refused("--strict");
    assert!(strict.contains("--serve"), "{strict}");
}
