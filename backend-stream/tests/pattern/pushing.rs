//! Tests of entries that other clients add to the stream (R20).

use std::time::{Duration, Instant};

use relq_conformance::{assert_within, server::Server};
use relq_core::{
    operator::{Cancelled, JobState, JobView, PeekRequest, Selection},
    *,
};

use crate::fixture::*;

/// Waits until a notifier is blocked at the server, in its blocking command.
async fn until_held(server: &Server) {
    let start = Instant::now();
    while !say(server, "CLIENT LIST").contains("cmd=xreadgroup") {
        assert!(start.elapsed() < LONG, "no notifier waits");
        tokio::task::yield_now().await;
    }
}

/// R20: an entry that any client adds wakes a waiting claim, and its delivery counts as
/// the first.
#[tokio::test]
async fn a_bare_push_wakes_a_waiting_claim_at_once() {
    assert_within(Duration::from_secs(1), async || {
        let server = Server::start();
        let queue = open(&server, "q").await;
        let asking = ask("w").wait(LONG);
        let add = async {
            until_held(&server).await;
            say(&server, "XADD q * job hello");
            Instant::now()
        };

        let (delivery, added) = tokio::join!(queue.claim_one(&asking), add);

        let took = added.elapsed();
        let delivery = delivery.unwrap().unwrap();
        assert_eq!((&delivery.payload[..], delivery.attempt()), (&b"hello"[..], 1));
        assert_sound(&queue).await;
        took
    })
    .await;
}

/// If a waiter dies after its notifier read a job, the job is ready. It counts as not
/// yet delivered.
#[tokio::test]
async fn a_dead_waiter_has_taken_nothing() {
    let server = Server::start();
    let (gone, queue) = (open(&server, "q").await, open(&server, "q").await);
    let waiting =
        tokio::spawn(async move { gone.claim_one(&ask("gone").wait(LONG)).await });
    until_held(&server).await;
    waiting.abort();
    say(&server, "XADD q * job first");
    push(&queue, "second").await;

    let taken = take(&queue, 2).await;

    let seen: Vec<_> =
        taken.iter().map(|one| (&one.payload[..], one.attempt())).collect();
    assert_eq!(seen, [(&b"first"[..], 1), (&b"second"[..], 1)]);
    assert_sound(&queue).await;
}

/// R20, R2: the field `job` is the payload, and other fields arrive as headers.
#[tokio::test]
async fn fields_beside_the_payload_are_headers() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    say(&server, "XADD q * to anna job hello from bert");

    let held = take_one(&queue).await;
    queue.bury(&held.receipt, "no").await.unwrap();
    queue.redrive(&Selection::All).await.unwrap();
    let again = take_one(&queue).await;

    for one in [held, again] {
        let headers: Vec<_> = one.headers.iter().collect();
        assert_eq!(headers, [("to", "anna"), ("from", "bert")]);
        assert_eq!(&one.payload[..], b"hello");
    }
}

/// R3, R20: an entry of very many fields is a valid push. Reading them must not take the
/// square of their number, or the jobs behind it wait for minutes.
#[tokio::test]
async fn an_entry_of_many_fields_holds_up_no_job() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let names: Vec<_> = (0..100_000).map(|number| format!("name-{number}")).collect();
    let push: [&[u8]; 5] = [b"XADD", b"q", b"*", b"job", b"wide"];
    let fields = names.iter().flat_map(|name| [name.as_bytes(), &b"value"[..]]);
    server.command(&push.into_iter().chain(fields).collect::<Vec<_>>());
    say(&server, "XADD q * job behind");
    let began = Instant::now();

    let wide = take_one(&queue).await;
    let behind = served(&queue).await;

    let took = began.elapsed();
    assert_eq!(
        (&wide.payload[..], wide.headers.iter().count()),
        (&b"wide"[..], 100_000)
    );
    assert_eq!(behind, ["behind"]);
    assert!(took < LONG, "{took:?}");
}

/// R20: a single field is the payload, whatever its name.
#[tokio::test]
async fn a_single_field_may_have_any_name() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    say(&server, "XADD q * message hello");

    let held = take_one(&queue).await;

    assert_eq!((&held.payload[..], held.headers.is_empty()), (&b"hello"[..], true));
    finish(&queue, vec![held]).await;
}

/// R3: an entry of several fields without the field `job` is not run with an empty
/// payload. It becomes a dead letter, and its fields are kept as headers.
#[tokio::test]
async fn an_entry_without_a_payload_is_buried_with_its_fields() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let id = say(&server, "XADD q * user anna mail a@b.c");
    push(&queue, "behind").await;

    assert_eq!(served(&queue).await, ["behind"]);

    let ask = PeekRequest::new(JobState::Dead, many(10));
    let buried = queue.peek(&ask).await.unwrap().jobs.remove(0);
    let fields: Vec<_> = buried.headers.iter().collect();
    assert_eq!(fields, [("user", "anna"), ("mail", "a@b.c")]);
    assert!(id.contains(buried.id.unwrap().as_str()), "{id}");
    let again = queue.recover(many(10)).await.unwrap().buried;
    assert_eq!(again, 0, "R3: the entry is buried only once");
    assert_sound(&queue).await;
}

/// R20, R23: in each state, peek shows the id and the headers of an entry that another
/// client added.
#[tokio::test]
async fn an_entry_of_another_client_shows_its_id_and_headers() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let id = say(&server, "XADD q * to anna job hello");
    let shown = async |state| {
        let ask = PeekRequest::new(state, many(10));
        let job = queue.peek(&ask).await.unwrap().jobs.remove(0);
        let headers: Vec<_> = job.headers.iter().collect();
        assert_eq!(headers, [("to", "anna")], "{state:?}");
        assert!(id.contains(job.id.unwrap().as_str()), "{state:?}: {id}");
    };

    shown(JobState::Ready).await;
    let held = take_one(&queue).await;
    shown(JobState::Leased).await;
    queue.bury(&held.receipt, "no").await.unwrap();
    shown(JobState::Dead).await;
    queue.redrive(&Selection::All).await.unwrap();
    shown(JobState::Ready).await;
}

/// R3: an entry whose fields are not text becomes a dead letter, with all its bytes.
#[tokio::test]
async fn headers_that_are_no_text_are_buried_with_their_bytes() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    server.command(&[b"XADD", b"q", b"*", b"job", b"x", b"h", b"\xff\xfe"]);
    push(&queue, "behind").await;

    assert_eq!(served(&queue).await, ["behind"]);

    let ask = PeekRequest::new(JobState::Dead, many(10));
    let buried = queue.peek(&ask).await.unwrap().jobs.remove(0);
    assert!(buried.payload.windows(2).any(|bytes| bytes == b"\xff\xfe"));
    assert_sound(&queue).await;
}

/// R3: a listing says of a ready entry that no worker can run it, with the id and the reason
/// of the dead letter that a claim makes of it. Otherwise an export would take it for a job.
#[tokio::test]
async fn an_entry_that_no_worker_can_run_is_listed_with_the_reason() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let entries: [&[&[u8]]; 4] = [
        &[b"job", b"\xf5RQ\x01junk"],
        &[b"job", b"\xf5RQ\x01junk", b"to", b"anna"],
        &[b"job", b"x", b"h", b"\xff"],
        &[b"user", b"anna", b"mail", b"a@b.c"],
    ];
    for fields in entries {
        let push: [&[u8]; 3] = [b"XADD", b"q", b"*"];
        server.command(&[&push[..], fields].concat());
    }
    say(&server, "XADD q * to anna job good");

    let ask = PeekRequest::new(JobState::Ready, many(10));
    let listed = queue.peek(&ask).await.unwrap().jobs;

    assert_eq!(served(&queue).await, ["good"]);
    let told = |job: JobView| Some((job.id?.to_string(), job.unreadable?));
    let mut told: Vec<_> = listed.into_iter().filter_map(told).collect();
    let mut buried = dead(&queue).await;
    told.sort();
    buried.sort();
    assert_eq!(told.len(), entries.len());
    assert_eq!(told, buried);
}

/// A job that another client added keeps the id of its entry when it is returned, and
/// peek shows its attempts.
#[tokio::test]
async fn a_returned_job_shows_its_id_and_attempts() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    say(&server, "XADD q * job hello");
    let id = only_entry(&server);
    abandon(&queue).await;
    queue.recover(many(10)).await.unwrap();

    let ready = queue.peek(&PeekRequest::new(JobState::Ready, many(10))).await.unwrap();

    assert_eq!(ready.jobs[0].id.as_ref().unwrap().as_str(), id);
    assert_eq!(ready.jobs[0].attempt, 1);
    let cancelled = queue.cancel(&JobId::new(id).unwrap()).await.unwrap();
    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    assert_sound(&queue).await;
}
