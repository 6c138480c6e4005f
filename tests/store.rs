//! `relq::store`: the queues of a file, of a server and of a queue of several parts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use relq::{
    ConnectError, Error, NewJob, QueueName, ReliableQueueExt as _,
    operator::PageCursor,
    store::{self, StoreQueue},
};
use relq_conformance::server::Server;

fn named(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// Pushes one job to the queue, which creates it.
async fn create(url: &str, name: &str) {
    let queue = relq::connect(url, &named(name)).await.unwrap();
    queue.push_one(NewJob::new("job")).await.unwrap();
}

/// All queues of the store, and the number of pages that listed them.
async fn all(url: &str) -> (Vec<StoreQueue>, usize) {
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store::queues(url, after.as_ref()).await.unwrap();
        found.extend(page.queues);
        (after, pages) = (page.next, pages + 1);
        if after.is_none() {
            return (found, pages);
        }
    }
}

async fn refusal(url: &str, after: Option<&PageCursor>) -> Error {
    match store::queues(url, after).await {
        Err(ConnectError::Queue(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn the_queues_of_a_file_are_listed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("jobs.db").display());
    for name in ["b", "a", "c d"] {
        create(&url, name).await;
    }

    let (found, _) = all(&url).await;

    let names: Vec<_> = found.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c d"]);
    for queue in &found {
        assert_eq!(queue.backend.as_deref(), Some("sqlite"));
        assert_eq!(queue.url.as_deref(), Some(&*url));
        let open = store::open(&url, queue).await.unwrap();
        assert_eq!(open.stats().await.unwrap().ready, 1);
    }
}

/// A file with more queues than a page has is listed over several pages.
#[tokio::test]
async fn many_queues_of_a_file_are_on_several_pages() {
    let folder = tempfile::tempdir().unwrap();
    let url =
        format!("sqlite:{}?synchronous=normal", folder.path().join("a").display());
    let names: BTreeSet<_> = (0..101).map(|number| format!("{number}")).collect();
    for name in &names {
        relq::connect(&url, &named(name)).await.unwrap();
    }

    let (found, pages) = all(&url).await;

    let found: Vec<_> = found.into_iter().map(|queue| queue.name.to_string()).collect();
    assert_eq!(found, names.into_iter().collect::<Vec<_>>());
    assert_eq!(pages, 2);
}

#[tokio::test]
async fn a_missing_file_is_refused_and_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("jobs.db").display());

    let error = refusal(&url, None).await;

    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let error = refusal("sqlite::memory:", None).await;
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
}

/// A file may be gone when a queue of its list is opened. It is not created, so that nobody
/// takes an empty queue for the listed one.
#[tokio::test]
async fn opening_a_listed_queue_creates_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let [kept, gone] =
        ["kept", "gone"].map(|it| format!("sqlite:{}", file(it).display()));
    create(&kept, "a").await;
    let (found, _) = all(&kept).await;

    let opened = store::open(&gone, &found[0]).await;

    assert!(
        matches!(opened, Err(ConnectError::Queue(Error::Unusable { .. }))),
        "{opened:?}"
    );
    assert!(!file("gone").exists(), "the file is created");
}

/// The queues of all backends are listed whichever of them the URL names. A queue of
/// several parts is one of them, and opening it opens all of its parts.
#[tokio::test]
async fn the_queues_of_a_server_are_listed_and_opened() {
    let server = Server::start_with(&["--requirepass", "s3cret"]);
    let given = |backend: &str, options: &str| {
        format!("{backend}+{}?pass=s3cret{options}", server.url())
    };
    for _ in 0..31 {
        create(&given("zset", "&partitions=3"), "parts").await;
    }
    create(&given("circular", "&finish=lrem"), "ring").await;
    create(&given("zset", ""), "parts:x").await;
    let url = given("stream", "");

    let (mut found, _) = all(&url).await;

    found.sort_by_key(|queue| queue.name.clone());
    let shown = |queue: &StoreQueue| {
        (queue.name.to_string(), queue.backend.clone().unwrap(), queue.url.clone())
    };
    let bare = |backend: &str, options: &str| {
        Some(format!("{backend}+{}{options}", server.url()))
    };
    assert_eq!(
        found.iter().map(shown).collect::<Vec<_>>(),
        [
            ("parts".to_owned(), "zset".to_owned(), bare("zset", "?partitions=3")),
            ("parts:x".to_owned(), "zset".to_owned(), bare("zset", "")),
            (
                "ring".to_owned(),
                "circular".to_owned(),
                bare("circular", "?finish=lrem")
            ),
        ]
    );
    let mut ready = Vec::new();
    for queue in &found {
        let open = store::open(&url, queue).await.unwrap();
        ready.push(open.stats().await.unwrap().ready);
    }
    assert_eq!(ready, [31, 1, 1]);
}

/// A URL has the options of the queue that its user works on. Each of them may be there when
/// the queues of its server are listed.
#[tokio::test]
async fn the_options_of_one_queue_do_not_hinder_the_list() {
    let server = Server::start();
    create(&format!("zset+{}?partitions=3", server.url()), "q").await;
    for given in [
        "zset+URL?partitions=2",
        "zset+URL?partitions=2&claim_from=3",
        "zset+URL?part=2",
        "circular+URL?finish=lrem",
        "processing-list+URL?mode=shared",
        "keyspace+URL?foreign=tolerate",
    ] {
        let url = given.replace("URL", &server.url());

        let (found, _) = all(&url).await;

        let names: Vec<_> = found.iter().map(|queue| queue.name.as_str()).collect();
        assert_eq!(names, ["q"], "listed by {given}");
        let open = store::open(&url, &found[0]).await.unwrap();
        assert_eq!(open.stats().await.unwrap().ready, 1, "opened by {given}");
    }
}

/// A queue whose marker is no marker is listed without a backend, so that an operator
/// sees it.
#[tokio::test]
async fn a_queue_with_a_damaged_marker_is_listed() {
    let server = Server::start();
    server.command(&[b"SET", b"{odd}:marker", b"no marker"]);

    let (found, _) = all(&server.url()).await;

    assert_eq!((found[0].name.as_str(), &found[0].backend), ("odd", &None));
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn a_cursor_of_another_listing_is_refused() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("jobs.db").display());
    create(&file, "a").await;
    for (url, cursor) in [(server.url(), "x"), (server.url(), "h:1/0"), (file, "\n")] {
        let cursor = PageCursor(cursor.to_owned().into());

        let error = refusal(&url, Some(&cursor)).await;

        assert!(matches!(error, Error::Invalid { .. }), "{url}: {error:?}");
    }
}
