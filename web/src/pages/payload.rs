//! A payload, a result or other bytes of a job.

use maud::{Markup, html};
use serde_json::Value;

use crate::{
    app::App,
    json_text::indented,
    redact::ShownJob,
    text::{beginning, number, one_line, visible},
};

/// How many characters a list shows.
const PREVIEW: usize = 120;

/// How many bytes of a payload a list looks at.
const PREVIEW_BYTES: usize = 4 * PREVIEW;

/// The beginning of a job's payload, for a list.
pub(crate) fn preview(shown: &ShownJob) -> Markup {
    match shown.hidden {
        Some(why) => html! { span.quiet { (why) } },
        None => {
            let (text, is_cut) = beginning(&shown.job.payload, PREVIEW_BYTES);
            let mark = if is_cut { "…" } else { "" };
            html! { (one_line(&format!("{text}{mark}"), PREVIEW)) }
        }
    }
}

/// A job's payload.
pub(crate) fn whole(app: &App, shown: &ShownJob) -> Markup {
    match shown.hidden {
        Some(why) => html! { p.quiet { (why) } },
        None => block(app, &shown.job.payload),
    }
}

/// Bytes from which the rules have yet to hide parts.
pub(crate) fn redacted(app: &App, bytes: &[u8]) -> Markup {
    match app.redaction.bytes(bytes) {
        Err(why) => html! { p.quiet { (why) } },
        Ok(Some(shown)) => block(app, shown.as_bytes()),
        Ok(None) => block(app, bytes),
    }
}

/// Bytes up to the limit: JSON with indentation, other text as it is, anything else with
/// escapes.
fn block(app: &App, bytes: &[u8]) -> Markup {
    if bytes.is_empty() {
        return html! { p.quiet { "empty" } };
    }
    let is_whole = bytes.len() <= app.max_shown;
    if let Some(json) = is_whole.then(|| json_of(bytes)).flatten() {
        return html! {
            pre tabindex="0" { (visible(&indented(json))) }
            p.quiet { (number(bytes.len() as u64)) " bytes of JSON, indented" }
        };
    }
    let (text, is_cut) = beginning(bytes, app.max_shown);
    let kind =
        if std::str::from_utf8(bytes).is_ok() { "of text" } else { "with escapes" };
    html! {
        pre tabindex="0" { (text) }
        p.quiet {
            @if is_cut { "The first " (number(app.max_shown as u64)) " of " }
            (number(bytes.len() as u64)) " bytes " (kind)
        }
    }
}

/// The text of a JSON object or array; `None` for other bytes.
fn json_of(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let value: Value = serde_json::from_str(text).ok()?;
    (value.is_object() || value.is_array()).then_some(text)
}
