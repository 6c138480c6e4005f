//! Lists of several pages: each page goes on where the one before ended.

use std::{collections::BTreeSet, net::SocketAddr, num::NonZeroU32};

use relq::{
    QueueName, WorkerId,
    batch::{BatchId, NewBatch},
    operator::WorkerReport,
};
use relq_web::{Access, FixedQueues, WebPage};

use crate::{
    client::Request,
    html, on_each_store,
    site::{Site, serve},
};

/// Follows the links of this text from the first page to the last one. Returns for each page
/// the texts that begin with `prefix`.
async fn texts_of_all(
    to: SocketAddr,
    first: &str,
    next: &str,
    prefix: &str,
) -> Vec<Vec<String>> {
    let (mut pages, mut path) = (Vec::new(), Some(first.to_owned()));
    while let Some(here) = path {
        assert!(pages.len() < 10, "{next} leads from {here} to no last page");
        let page = Request::get(here).send(to).await.page();
        let texts = page.split('<').filter_map(|part| part.split_once('>'));
        let texts = texts.map(|(_, text)| text).filter(|it| it.starts_with(prefix));
        pages.push(texts.map(str::to_owned).collect());
        path = html::link(&page, next);
    }
    pages
}

fn names(prefix: &str, count: u32) -> Vec<String> {
    (0..count).map(|at| format!("{prefix}{at:03}")).collect()
}

/// The filter holds on all pages.
#[tokio::test]
async fn each_queue_is_on_one_page_of_the_overview() {
    let queue = Site::sqlite().await.queue.clone();
    let all = [names("q-", 120), names("r-", 60)].concat();
    let queues = all.iter().map(|name| (QueueName::new(name).unwrap(), queue.clone()));
    let page = WebPage::new(FixedQueues::new(queues), Access::checked_by_caller());
    let (address, serving) = serve(page.router()).await;

    let pages = texts_of_all(address, "/?name=q-", "More queues", "q-").await;
    let others = texts_of_all(address, "/?name=q-", "More queues", "r-").await;

    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [50, 50, 20]);
    assert_eq!(pages.concat(), names("q-", 120));
    assert!(others.concat().is_empty(), "the filter is lost: {others:?}");
    serving.abort();
}

async fn each_batch_is_on_one_page(site: &Site) {
    let batches = site.queue.batch_queue().unwrap();
    for name in names("b-", 120) {
        let batch = NewBatch::new(BatchId::new(name).unwrap());
        batches.create(&batch).await.unwrap();
    }

    let first = "/queue/emails/batches";
    let pages = texts_of_all(site.address, first, "Next page", "b-").await;

    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [50, 50, 20]);
    assert_eq!(pages.concat(), names("b-", 120));
}

#[tokio::test]
async fn each_batch_of_sqlite_is_on_one_page() {
    each_batch_is_on_one_page(&Site::sqlite().await).await;
}

#[tokio::test]
async fn each_batch_of_stream_is_on_one_page() {
    each_batch_is_on_one_page(&Site::redis("stream").await).await;
}

on_each_store! {
    /// The order is that of the store, which may list a worker twice.
    async fn each_worker_is_on_a_page(site) {
        for name in names("w-", 450) {
            let worker = WorkerId::new(name).unwrap();
            let report = WorkerReport::new(worker, NonZeroU32::MIN);
            site.queue.report_worker(&report).await.unwrap();
        }

        let first = "/queue/emails/workers";
        let pages = texts_of_all(site.address, first, "More workers", "w-").await;

        assert!(pages.len() > 1, "450 workers are on one page");
        let listed: BTreeSet<_> = pages.concat().into_iter().collect();
        let reported: BTreeSet<_> = names("w-", 450).into_iter().collect();
        assert_eq!(listed, reported);
    }
}
