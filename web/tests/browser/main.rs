//! The page in a real browser: each button is clicked, and the console stays empty.
//!
//! The tests need chromium and chromedriver, and so they run only when they are asked for:
//!
//! ```sh
//! cargo test -p relq-web --test browser -- --ignored
//! ```
//!
//! With `RELQ_WRITE_PICTURES=1` they write pictures of the page to `docs/pictures`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accessibility;
#[path = "../page/client.rs"]
#[allow(dead_code, reason = "the tests of the page need all of it")]
mod client;
mod driver;
#[path = "../page/html.rs"]
#[allow(dead_code, reason = "the tests of the page need all of it")]
mod html;
mod pictures;
#[path = "../page/site.rs"]
#[allow(dead_code, reason = "the tests of the page need all of it")]
mod site;

use std::time::Duration;

use relq::{
    NewJob,
    batch::{BatchId, NewBatch},
    capabilities::Capability,
};

use driver::Browser;
use serde_json::json;
use site::Site;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// How many pages show live counts at once.
const STREAMS: usize = 64;

/// Opens a page of the queue.
async fn open(browser: &Browser, site: &Site, page: &str) {
    browser.go(&format!("http://{}/queue/emails{page}", site.address)).await;
}

/// Clicks a button, says yes if the change cannot be undone, and waits for what was done.
async fn press(browser: &Browser, label: &str, done: &str) {
    browser.click(label).await;
    if !matches!(label, "Pause" | "Resume") {
        // The click may return before the next page is there.
        browser.wait_for("No, go back").await;
        browser.click(&format!("Yes: {}", label.to_lowercase())).await;
    }
    browser.wait_for(done).await;
}

/// Fails if the console has an error or a violation of the policy.
async fn check_console(browser: &Browser) {
    let said = browser.console().await;
    assert!(said.is_empty(), "{said:?}");
}

async fn each_button_works(site: &Site) {
    let browser = Browser::start().await;
    open(&browser, site, "").await;
    press(&browser, "Pause", "The queue is paused.").await;
    press(&browser, "Resume", "The queue runs again.").await;

    site.push("later", NewJob::new("x").delay(Duration::from_secs(3600))).await;
    open(&browser, site, "/jobs/scheduled").await;
    browser.click("later").await;
    press(&browser, "Run now", "The job later is ready.").await;
    press(&browser, "Cancel", "The job later was removed.").await;

    for (id, error) in [("a", "one"), ("b", "two"), ("c", "two"), ("d", "three")] {
        site.bury(id, error).await;
    }
    open(&browser, site, "/job?id=a").await;
    press(&browser, "Retry", "1 dead job is ready again.").await;
    open(&browser, site, "/dead").await;
    press(&browser, "Retry group", "2 dead jobs are ready again.").await;
    press(&browser, "Purge group", "1 dead job was removed.").await;
    site.bury_next("again").await;
    open(&browser, site, "/dead").await;
    press(&browser, "Retry all", "1 dead job is ready again.").await;
    site.queue.purge().await.unwrap();
    site.bury("e", "again").await;
    open(&browser, site, "/jobs/dead").await;
    browser.click("e").await;
    press(&browser, "Purge", "1 dead job was removed.").await;
    site.bury("f", "again").await;
    open(&browser, site, "/dead").await;
    press(&browser, "Purge all", "1 dead job was removed.").await;
    assert_eq!(site.counts().await, [0; 4]);
    check_console(&browser).await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn each_button_works_on_sqlite() {
    each_button_works(&Site::sqlite().await).await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn each_button_works_on_zset() {
    each_button_works(&Site::redis("zset").await).await;
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn a_batch_is_cancelled() {
    let (site, browser) = (Site::sqlite().await, Browser::start().await);
    let id = BatchId::new("nightly").unwrap();
    let batches = site.queue.batch_queue().unwrap();
    batches.create(&NewBatch::new(id.clone())).await.unwrap();
    batches.add(&id, &["a", "b"].map(NewJob::new), None).await.unwrap();
    open(&browser, &site, "/batches").await;

    browser.click("nightly").await;
    press(&browser, "Cancel batch", "The batch nightly is cancelled.").await;

    check_console(&browser).await;
}

/// The counts change without a reload.
#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn counts_are_live() {
    let (site, browser) = (Site::sqlite().await, Browser::start().await);
    open(&browser, &site, "").await;
    browser.wait_for("The counts are live.").await;

    for at in 0..1234 {
        site.push(&format!("job-{at}"), NewJob::new("x")).await;
    }

    browser.wait_for("1,234").await;
    check_console(&browser).await;
}

/// Counts that stand still are not called live.
#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn counts_that_cannot_be_read_are_not_live() {
    let (mut site, browser) = (Site::redis("zset").await, Browser::start().await);
    open(&browser, &site, "").await;
    browser.wait_for("The counts are live.").await;

    site.server.as_mut().unwrap().kill();
    browser.wait_for("The counts cannot be read: ").await;
    site.server.as_mut().unwrap().restart();

    browser.wait_for("The counts are live.").await;
    check_console(&browser).await;
}

/// The browser does not ask again by itself after an answer that is an error.
#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn counts_become_live_when_there_is_room() {
    let (site, browser) = (Site::sqlite().await, Browser::start().await);
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        let ask = format!("GET /live HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        streams.push(stream);
    }
    open(&browser, &site, "").await;
    browser.wait_for("The counts are not live.").await;

    drop(streams);

    browser.wait_for("The counts are live.").await;
}

/// No page scrolls sideways on a phone, nor does a table of dead letters.
#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn the_pages_fit_a_phone() {
    let (site, browser) = (Site::sqlite().await, Browser::start().await);
    assert!(site.queue.capabilities().supports(Capability::Batches));
    pictures::fill(&site).await;
    pictures::resize(&browser, pictures::PHONE).await;
    let script = "return document.documentElement.scrollWidth - innerWidth";
    for page in accessibility::PAGES {
        open(&browser, &site, page).await;
        let excess = browser.run(script, json!([])).await;
        assert!(excess.as_i64().unwrap() <= 0, "{page} is {excess} pixels too wide");
    }
    open(&browser, &site, "/dead").await;
    let script = "const table = document.querySelector('.scroll');
        return table.scrollWidth - table.clientWidth";
    let excess = browser.run(script, json!([])).await;
    assert!(excess.as_i64().unwrap() <= 0, "the table is {excess} pixels too wide");
    check_console(&browser).await;
}
