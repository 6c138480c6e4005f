//! Shows what became of a job: as a line for people, as JSON for scripts.

use base64::{Engine, engine::general_purpose::STANDARD};
use relq::{JobId, results::JobResult};
use serde::Serialize;

use crate::{
    printable::{cut, payload, printable},
    table::line_width,
};

/// The result or the state of a job, as JSON.
///
/// `result` and `progress` are the text of bytes that are valid UTF-8, and null for any
/// others; `result_base64` and `progress_base64` are set for exactly these. `state` is null
/// for a job of which nothing is known.
#[derive(Serialize, Debug)]
pub(super) struct Report<'a> {
    id: &'a str,
    state: Option<&'static str>,
    result: Option<&'a str>,
    result_base64: Option<String>,
    progress: Option<&'a str>,
    progress_base64: Option<String>,
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    followed: Option<&'a str>,
    #[serde(skip)]
    found: Option<&'a JobResult>,
}

impl<'a> Report<'a> {
    pub(super) fn of(id: &'a JobId, found: Option<&'a JobResult>) -> Self {
        let bytes = match found {
            Some(JobResult::Done { result }) => Some(&result[..]),
            _ => None,
        };
        let (result, result_base64) = text_or_base64(bytes);
        let shown = match found {
            Some(JobResult::Unfinished { progress }) => progress.as_deref(),
            _ => None,
        };
        let (progress, progress_base64) = text_or_base64(shown);
        let error = match found {
            Some(JobResult::Dead { error }) => Some(error.as_str()),
            _ => None,
        };
        let followed = match found {
            Some(JobResult::Cancelled { leader }) => leader.as_ref().map(JobId::as_str),
            _ => None,
        };
        let (id, state) = (id.as_str(), found.map(state));
        Self {
            id,
            state,
            result,
            result_base64,
            progress,
            progress_base64,
            error,
            followed,
            found,
        }
    }

    /// The job in one line: its id, its state, and its result, progress or error.
    pub(super) fn line(&self) -> String {
        let width = line_width();
        let shown = match self.found {
            Some(JobResult::Done { result }) => Some(payload(result, width)),
            Some(JobResult::Unfinished { progress: Some(progress) }) => {
                Some(payload(progress, width))
            }
            Some(JobResult::Dead { error }) => Some(printable(error)),
            Some(JobResult::Cancelled { leader: Some(leader) }) => {
                Some(printable(&format!("it followed {leader}")))
            }
            _ => None,
        };
        let shown = shown.filter(|shown| !shown.is_empty());
        let shown = shown.map(|shown| format!(": {shown}")).unwrap_or_default();
        let (id, state) = (printable(self.id), self.state.unwrap_or("not known"));
        cut(format!("{id} {state}{shown}"), width) + "\n"
    }
}

fn state(result: &JobResult) -> &'static str {
    match result {
        JobResult::Unfinished { .. } => "unfinished",
        JobResult::Done { .. } => "done",
        JobResult::Dead { .. } => "dead",
        JobResult::Discarded => "discarded",
        JobResult::Cancelled { .. } => "cancelled",
        JobResult::Purged => "purged",
        _ => "of a newer version",
    }
}

fn text_or_base64(bytes: Option<&[u8]>) -> (Option<&str>, Option<String>) {
    let Some(bytes) = bytes else { return (None, None) };
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}
