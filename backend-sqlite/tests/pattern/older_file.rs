//! A file that was written before followers (R30).

use relq_core::{Operator as _, ReliableQueueExt as _};

use crate::fixture::{Folder, raw};
use crate::followers::{claim, id, leaders, named, problems, push};

/// The version of the schema before followers.
const OLD: u32 = 6;

/// Writes a file with the schema before followers: a ready job, one that was retried after
/// an endless delay, and the id of one that has ended.
pub(crate) fn make_old_file(folder: &Folder) {
    let conn = raw(&folder.file());
    for schema in [
        include_str!("../../sql/schema_1.sql"),
        include_str!("../../sql/schema_2.sql"),
        include_str!("../../sql/schema_3.sql"),
        include_str!("../../sql/schema_4.sql"),
        include_str!("../../sql/schema_5.sql"),
        include_str!("../../sql/schema_6.sql"),
    ] {
        conn.execute_batch(schema).unwrap();
    }
    conn.execute_batch(
        "INSERT INTO queues (queue, name, next_turn) VALUES (1, 'jobs', 9);
         INSERT INTO jobs (queue, id, keeps_id, state, priority, turn, max_attempts)
         VALUES (1, 'lead', 1, 'ready', 5, 1, 25);
         INSERT INTO jobs (queue, id, keeps_id, state, priority, at, place, max_attempts)
         VALUES (1, 'endless', 1, 'scheduled', 5, 9223372036854775807, 2, 25);
         INSERT INTO bodies (job, payload) VALUES (1, x'00'), (2, x'00');
         INSERT INTO ended_ids (queue, id, until) VALUES (1, 'ended', 1 << 60);
         PRAGMA journal_mode = WAL",
    )
    .unwrap();
    conn.pragma_update(None, "user_version", OLD).unwrap();
    conn.pragma_update(None, "application_id", u32::from_be_bytes(*b"relq")).unwrap();
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
