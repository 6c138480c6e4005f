//! Writes the record of a job for people, one property a line.

use std::fmt::Write as _;

use relq::{
    Headers, JobId,
    environment::Timestamp,
    operator::{JobRecord, JobView, StateDetail},
    unique::UniqueKey,
};

use crate::{
    printable::{self, columns, cut, printable},
    view::{ids_of, time},
};

/// The width of the names of the properties.
const NAMES: usize = 12;

/// How many headers are shown, and how many columns of each. Another client may have pushed
/// more of them, and longer ones, than a backend takes.
const HEADERS: usize = 200;
const HEADER_COLUMNS: usize = 4096;

/// The record as text. The payload is cut to `width` columns.
pub(crate) fn text(record: &JobRecord, width: usize) -> String {
    let mut lines = Lines::default();
    let job = &record.job;
    lines.add("id", job.id.as_ref().map_or("-", JobId::as_str));
    lines.add("state", job.detail.state().as_str());
    add_detail(&mut lines, &job.detail);
    add_job(&mut lines, job);
    if !record.followers.is_empty() {
        lines.add("followers", &ids_of(&record.followers).join(", "));
    }
    add_headers(&mut lines, &job.headers);
    lines.add_some("last error", job.last_error.as_deref());
    let bytes = job.payload.len();
    let shown = printable::payload(&job.payload, width.saturating_sub(NAMES));
    lines.add("bytes", &bytes.to_string());
    let payload = format!("{:<NAMES$}{shown}", "payload");
    lines.0.push_str(&cut(payload, width));
    lines.0.push('\n');
    lines.0
}

fn add_headers(lines: &mut Lines, headers: &Headers) {
    let (all, mut is_cut) = (headers.iter().count(), false);
    for (name, value) in headers.iter().take(HEADERS) {
        let text = format!("{name}={value}");
        let shown = printable::payload(text.as_bytes(), HEADER_COLUMNS);
        is_cut |= columns(&shown) > HEADER_COLUMNS;
        lines.add("header", &cut(shown, HEADER_COLUMNS));
    }
    if is_cut || all > HEADERS {
        let bytes = headers.total_bytes();
        let said = format!("{all}, of {bytes} bytes: cut here, and whole with --json");
        lines.add("headers", &said);
    }
}

fn add_detail(lines: &mut Lines, detail: &StateDetail) {
    match detail {
        StateDetail::Ready => {}
        StateDetail::Scheduled { due } => lines.add("due", &time(*due)),
        StateDetail::Following { leader, delay } => {
            lines.add("after", leader.as_str());
            if !delay.is_zero() {
                lines.add("delay", &humantime::format_duration(*delay).to_string());
            }
        }
        StateDetail::Leased { worker, since, until } => {
            lines.add("worker", worker.as_str());
            lines.add_some("host", worker.host());
            lines.add_some("pid", worker.pid().map(|pid| pid.to_string()).as_deref());
            lines.add("claimed", &time(*since));
            lines.add("lease ends", &time(*until));
        }
        StateDetail::Dead { reason, since } => {
            lines.add("dead since", &time(*since));
            lines.add("reason", reason);
        }
    }
}

fn add_job(lines: &mut Lines, job: &JobView) {
    lines.add("attempt", &format!("{} of {}", job.attempt, job.max_attempts));
    lines.add("priority", &job.priority.to_string());
    let at = |at: Option<Timestamp>| at.map(time);
    lines.add_some("pushed", at(job.enqueued_at).as_deref());
    lines.add_some("expires", at(job.expires_at).as_deref());
    lines.add_some("unique", job.unique.as_ref().map(UniqueKey::as_str));
    lines.add_some("batch", job.batch.as_ref().map(relq::batch::BatchId::as_str));
    let lasting = |it| humantime::format_duration(it).to_string();
    lines.add_some("lease", job.lease.map(lasting).as_deref());
    lines.add_some("keep result", job.keep_result.map(lasting).as_deref());
    lines.add_some("unreadable", job.unreadable.as_deref());
}

/// Lines with a name and a value.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: &str) {
        let value = printable(value);
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{name:<NAMES$}{value}");
    }

    fn add_some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_jobs::{details, job};

    #[test]
    fn each_property_of_a_job_has_its_line() {
        let of_one_state = [
            "state       ready\n",
            "state       scheduled\n\
             due         1970-01-01T00:00:11.000Z\n",
            "state       scheduled\n\
             after       leader\n\
             delay       12s\n",
            "state       leased\n\
             worker      mail-7:4711:nonce\n\
             host        mail-7\n\
             pid         4711\n\
             claimed     1970-01-01T00:00:13.000Z\n\
             lease ends  1970-01-01T00:00:14.000Z\n",
            "state       dead\n\
             dead since  1970-01-01T00:00:15.000Z\n\
             reason      it gave up\n",
        ];
        let of_each_state = "\
            attempt     2 of 7\n\
            priority    8\n\
            pushed      1970-01-01T00:00:22.000Z\n\
            expires     1970-01-01T00:00:21.000Z\n\
            unique      the-key\n\
            batch       nightly\n\
            lease       23s\n\
            keep result 24s\n\
            followers   b, c\n\
            header      tenant=acme\n\
            last error  disk full\n\
            bytes       11\n\
            payload     the payload\n";
        let followers = ["b", "c"].map(|id| JobId::new(id).unwrap());
        for (detail, state) in details().into_iter().zip(of_one_state) {
            let record = JobRecord::new(job(detail), followers.to_vec());

            let expected = format!("id          job-1\n{state}{of_each_state}");
            assert_eq!(text(&record, 200), expected);
        }
    }

    #[test]
    fn a_job_that_cannot_be_read_says_why() {
        let mut job = job(StateDetail::Ready);
        job.unreadable = Some("it cannot be read".to_owned());

        let text = text(&JobRecord::new(job, Vec::new()), 200);

        assert!(text.contains("\nunreadable  it cannot be read\n"), "{text}");
    }

    /// Another client may push headers of any size. They must not fill the terminal, and what
    /// is cut is said.
    #[test]
    fn headers_of_any_size_are_cut() {
        let long = vec![("long".to_owned(), "\u{1b}".repeat(2_000_000))];
        let many = (0..50_000).map(|number| (format!("h{number}"), "v".to_owned()));
        for (headers, said) in [
            (long, "\nheaders     1, of 2000004 bytes: cut here"),
            (many.collect(), "\nheaders     50000, of 338890 bytes: cut here"),
        ] {
            let mut job = job(StateDetail::Ready);
            job.headers = headers.into_iter().collect();

            let text = text(&JobRecord::new(job, Vec::new()), 200);

            assert!(text.len() < 10_000, "{} bytes", text.len());
            assert!(text.contains(said), "{text}");
        }
    }
}
