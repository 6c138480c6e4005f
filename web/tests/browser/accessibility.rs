//! The page by keyboard and by contrast, as WCAG 2.2 asks at level AA.

use serde_json::json;

use crate::{driver::Browser, open, pictures, site::Site};

/// One page of each kind.
pub(crate) const PAGES: [&str; 9] = [
    "",
    "/jobs/ready",
    "/jobs/leased",
    "/jobs/dead",
    "/dead",
    "/workers",
    "/batches",
    "/schedules",
    "/job?id=dead-1",
];

/// Returns the texts whose contrast is too low, with the ratio: 4.5 to 1 is asked for
/// (<https://www.w3.org/TR/WCAG22/#contrast-minimum>).
const TEXTS_OF_LOW_CONTRAST: &str = r"
const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
const luminance = (colour) => {
  const [r, g, b] = channels(colour).map((it) => {
    const part = it / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const background = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (channels(colour)[3] !== 0) return colour;
  }
  return 'rgb(255, 255, 255)';
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const low = [];
let read = 0;
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  if (!node.data.trim() || element.closest('svg') || !element.checkVisibility()) continue;
  read += 1;
  const both = [getComputedStyle(element).color, background(element)].map(luminance);
  const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  if (ratio < 4.5) low.push(`${node.data.trim()}: ${ratio.toFixed(2)}`);
}
return read > 5 ? low : ['only ' + read + ' texts were read'];
";

/// The controls that the key Tab reaches, in the order of the page.
const CONTROLS: &str = r"
const all = document.querySelectorAll('a[href], button, input, select, summary');
window.controls = [...all].filter((it) => it.type !== 'hidden' && it.checkVisibility());
return window.controls.length;
";

/// Returns the index of the control that has the focus, and whether an outline shows it.
const FOCUS: &str = r"
const element = document.activeElement;
const style = getComputedStyle(element);
const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
return [window.controls.indexOf(element), outlined];
";

#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn texts_have_contrast_in_both_schemes() {
    let (site, browser) = (Site::sqlite().await, Browser::start().await);
    pictures::fill(&site).await;
    for scheme in ["light", "dark"] {
        pictures::scheme(&browser, scheme).await;
        for page in PAGES {
            open(&browser, &site, page).await;
            let low = browser.run(TEXTS_OF_LOW_CONTRAST, json!([])).await;
            assert_eq!(low, json!([]), "{scheme} {page}");
        }
    }
}

#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn the_keyboard_reaches_every_control() {
    let (site, browser) = (Site::sqlite().await, Browser::start().await);
    pictures::fill(&site).await;
    for page in PAGES {
        open(&browser, &site, page).await;
        let controls = browser.run(CONTROLS, json!([])).await.as_u64().unwrap();
        assert!(controls > 5, "{page}");
        for at in 0..controls {
            browser.press("Tab").await;
            let focus = browser.run(FOCUS, json!([])).await;
            assert_eq!(focus, json!([at, true]), "{page}");
        }
    }
}

/// Pauses the queue, and retries a dead job, without a pointer.
#[tokio::test]
#[ignore = "needs chromium and chromedriver"]
async fn buttons_work_by_the_keyboard() {
    let (site, browser) = (Site::sqlite().await, Browser::start().await);
    site.bury("a", "no such mailbox").await;
    for (page, buttons, done) in [
        ("", vec!["Pause"], "The queue is paused."),
        ("/job?id=a", vec!["Retry", "Yes: retry"], "1 dead job is ready again."),
    ] {
        open(&browser, &site, page).await;
        for button in buttons {
            browser.wait_for(button).await;
            browser.tab_to(button).await;
            browser.press("Enter").await;
        }
        browser.wait_for(done).await;
    }
}
