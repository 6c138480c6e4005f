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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn unfinished(progress: &'static [u8]) -> Option<JobResult> {
        Some(JobResult::Unfinished { progress: Some(progress.into()) })
    }

    fn done(result: &'static [u8]) -> Option<JobResult> {
        Some(JobResult::Done { result: result.into() })
    }

    fn cancelled(leader: Option<&str>) -> Option<JobResult> {
        let leader = leader.map(|leader| JobId::new(leader).unwrap());
        Some(JobResult::Cancelled { leader })
    }

    /// The possible ends of a job, with the fields that are not null, and with the line.
    fn results() -> Vec<(Option<JobResult>, Value, &'static str)> {
        vec![
            (None, json!({}), "job not known"),
            (
                Some(JobResult::Unfinished { progress: None }),
                json!({"state": "unfinished"}),
                "job unfinished",
            ),
            (
                unfinished(b"42%"),
                json!({"state": "unfinished", "progress": "42%"}),
                "job unfinished: 42%",
            ),
            (
                unfinished(b"\xff"),
                json!({"state": "unfinished", "progress_base64": "/w=="}),
                "job unfinished: \\xff",
            ),
            (done(b""), json!({"state": "done", "result": ""}), "job done"),
            (done(b"x"), json!({"state": "done", "result": "x"}), "job done: x"),
            (
                done(b"\xff"),
                json!({"state": "done", "result_base64": "/w=="}),
                "job done: \\xff",
            ),
            (
                Some(JobResult::Dead { error: "no".to_owned() }),
                json!({"state": "dead", "error": "no"}),
                "job dead: no",
            ),
            (
                Some(JobResult::Discarded),
                json!({"state": "discarded"}),
                "job discarded",
            ),
            (cancelled(None), json!({"state": "cancelled"}), "job cancelled"),
            (
                cancelled(Some("leader")),
                json!({"state": "cancelled", "followed": "leader"}),
                "job cancelled: it followed leader",
            ),
            (Some(JobResult::Purged), json!({"state": "purged"}), "job purged"),
        ]
    }

    #[test]
    fn each_end_of_a_job_has_its_fields_and_its_line() {
        let id = JobId::new("job").unwrap();
        for (found, fields, line) in results() {
            let mut expected = json!({
                "id": "job", "state": null, "result": null, "result_base64": null,
                "progress": null, "progress_base64": null, "error": null,
            });
            let fields = fields.as_object().unwrap().clone();
            expected.as_object_mut().unwrap().extend(fields);

            let report = Report::of(&id, found.as_ref());

            let json = serde_json::to_value(&report).unwrap();
            assert_eq!(json, expected, "the fields of {found:?}");
            assert_eq!(report.line(), format!("{line}\n"), "the line of {found:?}");
        }
    }
}
