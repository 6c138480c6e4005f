//! Pictures of the page, for its documentation.

use std::{fs, path::Path, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use relq::{
    NewJob,
    batch::{BatchId, NewBatch},
};
use serde_json::json;

use crate::{driver::Browser, site::Site};

/// A phone, in pixels.
pub(crate) const PHONE: (u32, u32) = (390, 844);

const LAPTOP: (u32, u32) = (1200, 800);

/// Sets the size of the window.
pub(crate) async fn resize(browser: &Browser, (width, height): (u32, u32)) {
    let size = json!({
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
    });
    browser.tools("Emulation.setDeviceMetricsOverride", size).await;
}

/// Sets the scheme of colours that the visitor prefers: light or dark.
pub(crate) async fn scheme(browser: &Browser, scheme: &str) {
    let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
    browser.tools("Emulation.setEmulatedMedia", json!({"features": features})).await;
}

/// Fills a queue with jobs of all states.
pub(crate) async fn fill(site: &Site) {
    for (at, error) in [
        "connection to smtp-3.example.org:25 timed out after 30 s",
        "connection to smtp-7.example.org:25 timed out after 30 s",
        "no such mailbox: user 4711",
    ]
    .into_iter()
    .enumerate()
    {
        site.bury(&format!("dead-{at}"), error).await;
    }
    for at in 0..40 {
        let to = format!(r#"{{"to":"user-{at}@example.org","template":"welcome"}}"#);
        site.push(&format!("job-{at}"), NewJob::new(to).header("kind", "welcome"))
            .await;
    }
    site.claim().await;
    let later = NewJob::new("report").delay(Duration::from_secs(3600));
    site.push("report-2", later).await;
    let id = BatchId::new("nightly").unwrap();
    let batches = site.queue.batch_queue().unwrap();
    batches.create(&NewBatch::new(id.clone())).await.unwrap();
    batches.add(&id, &["a", "b"].map(NewJob::new), None).await.unwrap();
}

async fn picture(browser: &Browser, name: &str) {
    let shot = browser.tools("Page.captureScreenshot", json!({"format": "png"})).await;
    let png = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
    assert!(png.len() > 5000, "{name} shows something");
    if std::env::var_os("RELQ_WRITE_PICTURES").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), png).unwrap();
    }
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn pictures_can_be_taken() {
    let (site, browser) = (Site::sqlite().await, Browser::start().await);
    fill(&site).await;
    for (size, colours, name) in [
        (LAPTOP, "light", "light"),
        (LAPTOP, "dark", "dark"),
        (PHONE, "light", "phone"),
    ] {
        resize(&browser, size).await;
        scheme(&browser, colours).await;
        for (page, of) in [("", "queue"), ("/jobs/ready", "jobs"), ("/dead", "dead")] {
            crate::open(&browser, &site, page).await;
            browser.wait_for("emails").await;
            picture(&browser, &format!("web-{of}-{name}.png")).await;
        }
    }
}
