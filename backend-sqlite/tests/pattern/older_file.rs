//! Files that earlier versions wrote: one of each version, and one that was written before
//! followers (R30).

use relq_core::{
    NewJob, Operator as _, ReliableQueue as _, ReliableQueueExt as _,
    operator::{JobState, PeekRequest},
    outcome::{DuplicateOf, Pushed},
};
use relq_sqlite::SqliteQueue;

use crate::fixture::{Folder, LONG, many, raw};
use crate::followers::{claim, id, leaders, named, problems, push};

/// The version of the schema before followers.
const OLD: u32 = 6;

/// The schemas of all versions before the present one.
const EARLIER: [&str; 9] = [
    include_str!("../../sql/schema_1.sql"),
    include_str!("../../sql/schema_2.sql"),
    include_str!("../../sql/schema_3.sql"),
    include_str!("../../sql/schema_4.sql"),
    include_str!("../../sql/schema_5.sql"),
    include_str!("../../sql/schema_6.sql"),
    include_str!("../../sql/schema_7.sql"),
    include_str!("../../sql/schema_8.sql"),
    include_str!("../../sql/schema_9.sql"),
];

/// Writes a file of this version with the queue `jobs` and these rows.
fn make_file(folder: &Folder, version: u32, rows: &str) {
    let conn = raw(&folder.file());
    for schema in &EARLIER[..version as usize] {
        conn.execute_batch(schema).unwrap();
    }
    let queue = "INSERT INTO queues (queue, name, next_turn) VALUES (1, 'jobs', 50)";
    conn.execute_batch(&format!("{queue}; {rows}")).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    conn.pragma_update(None, "user_version", version).unwrap();
    conn.pragma_update(None, "application_id", u32::from_be_bytes(*b"relq")).unwrap();
}

/// Writes a file with the schema before followers: a ready job, one that was retried after
/// an endless delay, and the id of one that has ended.
pub(crate) fn make_old_file(folder: &Folder) {
    make_file(
        folder,
        OLD,
        "INSERT INTO jobs (queue, id, keeps_id, state, priority, turn, max_attempts)
         VALUES (1, 'lead', 1, 'ready', 5, 1, 25);
         INSERT INTO jobs (queue, id, keeps_id, state, priority, at, place, max_attempts)
         VALUES (1, 'endless', 1, 'scheduled', 5, 9223372036854775807, 2, 25);
         INSERT INTO bodies (job, payload) VALUES (1, x'00'), (2, x'00');
         INSERT INTO ended_ids (queue, id, until) VALUES (1, 'ended', 1 << 60)",
    );
}

/// Rows that a program with this version of the schema writes: jobs in each state, and from
/// the version on that has batches, a batch with a piece. The ids of ready and scheduled
/// jobs are not in the order in which they are served.
fn rows_of(version: u32) -> String {
    let has_batches = version >= 2;
    // From this version on, the file has the order of jobs that are due together.
    let (place, places) = match version >= 3 {
        true => (", place", [", 7", ", 8", ", 9"]),
        false => ("", [""; 3]),
    };
    let [first, second, third] = places;
    let mut rows = format!(
        "INSERT INTO jobs (job, queue, id, keeps_id, state, priority, turn, max_attempts)
         VALUES (1, 1, 'ready b', 0, 'ready', 5, 2, 25),
                (2, 1, 'ready a', 0, 'ready', 5, 3, 25);
         INSERT INTO jobs (job, queue, id, keeps_id, state, priority, at, max_attempts
                           {place})
         VALUES (3, 1, 'due c', 0, 'scheduled', 5, 4000000000000, 25{first}),
                (4, 1, 'due b', 0, 'scheduled', 5, 4000000000000, 25{second}),
                (5, 1, 'due a', 0, 'scheduled', 5, 4000000000000, 25{third});
         INSERT INTO jobs (job, queue, id, keeps_id, state, priority, turn, at, since,
                           worker, token, attempt, max_attempts)
         VALUES (6, 1, 'leased', 0, 'leased', 5, 1, 2, 1, 'w', x'00', 1, 25);
         INSERT INTO jobs (job, queue, id, keeps_id, state, priority, since, reason,
                           attempt, max_attempts)
         VALUES (7, 1, 'dead', 0, 'dead', 5, 1, 'broken', 1, 25);
         INSERT INTO ended_ids (queue, id, until) VALUES (1, 'ended', 1 << 60);"
    );
    if has_batches {
        rows +=
            "INSERT INTO batches (batch, queue, id, priority, metadata, retention_ms,
                                      created_at, total, ready)
                 VALUES (1, 1, 'batch', 50, x'', 3600000, 1, 1, 1);
                 INSERT INTO jobs (job, queue, id, keeps_id, state, priority, turn,
                                   max_attempts, batch)
                 VALUES (8, 1, 'piece', 0, 'ready', 5, 4, 25, 1);";
    }
    rows + "INSERT INTO bodies (job, payload) SELECT job, x'00' FROM jobs"
}

async fn listed(queue: &SqliteQueue, state: JobState) -> Vec<String> {
    let page = queue.peek(&PeekRequest::new(state, many(100))).await.unwrap();
    page.jobs.into_iter().map(|job| job.id.unwrap().to_string()).collect()
}

/// R1, R13: the jobs of a file of each earlier version are listed and served in their order,
/// before those that are pushed later. Expired leases are recovered, and ids of ended jobs
/// are known.
#[tokio::test]
async fn a_file_of_each_earlier_version_is_served() {
    for version in 1..=u32::try_from(EARLIER.len()).unwrap() {
        let folder = Folder::new();
        make_file(&folder, version, &rows_of(version));
        let queue = folder.queue().await;
        let what = format!("a file of version {version}");
        let newest: u32 = raw(&folder.file())
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap();
        assert_eq!(
            newest as usize,
            EARLIER.len() + 1,
            "all earlier versions are tested"
        );

        assert_eq!(problems(&queue).await, [""; 0], "R23: {what}");
        let due = ["due c", "due b", "due a"];
        assert_eq!(listed(&queue, JobState::Scheduled).await, due, "R13: {what}");
        assert_eq!(listed(&queue, JobState::Dead).await, ["dead"], "R3: {what}");
        assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 1, "R9: {what}");
        let by = DuplicateOf::Id;
        let duplicate = Pushed::Duplicate { existing: id("ended"), by };
        assert_eq!(queue.push_one(named("ended")).await.unwrap(), duplicate, "{what}");
        let later = NewJob::new("later").delay(LONG).id(id("due later"));
        push(&queue, &[named("ready later"), later]).await;
        let fall_due = "UPDATE jobs SET at = 1 WHERE state = 'scheduled'";
        assert_eq!(raw(&folder.file()).execute(fall_due, ()).unwrap(), 4);

        let served = claim(&queue, 100).await;
        let mut served: Vec<_> = served.iter().map(|it| it.job().as_str()).collect();
        let piece = (version >= 2).then(|| served.pop().unwrap());
        assert_eq!(piece, (version >= 2).then_some("piece"), "B4: {what}");
        let ready = ["leased", "ready b", "ready a", "ready later"];
        let all = [&ready[..], &due[..], &["due later"]].concat();
        assert_eq!(served, all, "R13: {what}");
        assert_eq!(problems(&queue).await, [""; 0], "R23: {what}");
    }
}

/// Jobs of an older file can be followed. How its ended jobs ended is not known, so they
/// count as done.
#[tokio::test]
async fn jobs_of_an_older_file_can_be_followed() {
    let folder = Folder::new();
    make_old_file(&folder);
    let queue = folder.queue().await;

    push(&queue, &[named("f").after(id("lead")), named("g").after(id("ended"))]).await;

    assert_eq!(leaders(&queue).await, ["lead"]);
    let stats = queue.stats().await.unwrap();
    assert_eq!(stats.scheduled, 2, "the retried job and the held one");
    let held = claim(&queue, 9).await;
    assert_eq!(
        held.iter().map(|it| it.job().as_str()).collect::<Vec<_>>(),
        ["lead", "g"]
    );
    queue.ack(&held[0]).await.unwrap();
    assert_eq!(claim(&queue, 9).await[0].job(), &id("f"));
    assert_eq!(problems(&queue).await, [""; 0]);
}

/// An older program refuses the file: it would end a leader and forget its followers.
#[tokio::test]
async fn the_file_names_the_version_with_followers() {
    let folder = Folder::new();
    make_old_file(&folder);
    let queue = folder.queue().await;

    let version: u32 = raw(&folder.file())
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();

    assert!(version > OLD, "{version}");
    drop(queue);
}
