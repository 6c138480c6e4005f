//! Sequences in which the options of a job, its state, and the calls about it meet in
//! every pair; the options with records beside the job meet in every triple.
//!
//! Each sequence pushes one job with some options, brings it into a state, makes one
//! call about it, pushes a job with the same options again, lets time pass, and works on
//! what is left. The reference judges every answer.

use super::{
    covering::{groups, rows},
    operation::Operation,
    sequence::{Sequence, Steps},
};

/// The columns that say which options the job has, each with its values as letters of
/// [`Draft`](super::operation::Draft): delay, expiry, priority, client's id, unique key,
/// attempts, lease of its own, headers. 9 is as long as allowed.
const OPTIONS: [&[&str]; 8] = [
    &["", "d1"],
    &["", "e1", "e2"],
    &["", "p1", "p2"],
    &["", "i1", "i9"],
    &["", "k1", "r1", "k9"],
    &["", "m1", "m2"],
    &["", "o1"],
    &["", "h1", "h9"],
];

/// The options with a record of their own beside the job: delay, expiry, client's id
/// and unique key.
const WITH_RECORDS: [usize; 4] = [0, 1, 3, 4];

/// How the job is pushed. `J` is the job.
const PUSHES: [&str; 5] = [
    "p push J",
    "p push J t1; p repeat t1",
    "p push j; p push J",
    "p push j,J",
    "p create 1 p0s1; p add 1 J",
];

/// The operations that bring the job into a state: scheduled or ready, due, leased,
/// leased for too long, failed, given back, dead, redriven.
const STATES: [&str; 8] = [
    "",
    "- advance 2; r recover 100",
    "- advance 2; a claim 3 l2",
    "- advance 2; a claim 3 l1; - advance 3",
    "- advance 2; a claim 3 l2; a settle 0R1",
    "- advance 2; a claim 3 l2; a settle 0G",
    "- advance 2; a claim 3 l2; a settle 0B",
    "- advance 2; a claim 3 l2; a settle 0B; o redrive-one 0",
];

/// The call about the job.
const CALLS: [&str; 20] = [
    "r recover 100",
    "o cancel 0",
    "o redrive-one 0",
    "o redrive",
    "o purge-dead",
    "o purge",
    "o pause; a claim 3 l1; o resume",
    "a claim 3 l1",
    "a release-worker",
    "a extend 0 l1",
    "a settle 0D",
    "a settle 0X",
    "a settle 0B",
    "a settle 0G",
    "a settle 0R0",
    "a settle 0R2",
    "a settle-and-claim 0D 2 l1",
    "a settle-and-claim 0R0 2 l1",
    "p seal 1; p batch 1",
    "o cancel-batch 1",
];

/// The push that may follow.
const AGAIN: [&str; 3] = ["", "p push J", "p push J t1"];

/// The time that passes: hardly any, past an expiry, past all leases and delays.
const PASSING: [&str; 3] = ["- advance 1", "- advance 3", "- advance 4"];

/// The work on what is left.
const REST: &str = "r recover 100; b claim 3 l1; b settle 0R0; b claim 3 l2; \
     b settle 0D; b release-worker";

/// The sequences, with all combinations of `strength` columns: 2, or more for a long
/// run.
pub(super) fn sequences(strength: usize) -> Vec<Sequence> {
    let columns: Vec<&[&str]> = [&CALLS[..], &STATES, &PUSHES, &AGAIN, &PASSING]
        .into_iter()
        .chain(OPTIONS)
        .collect();
    let values: Vec<_> = columns.iter().map(|column| column.len()).collect();
    let all: Vec<_> = (0..columns.len()).collect();
    let with_records =
        WITH_RECORDS.map(|option| columns.len() - OPTIONS.len() + option);
    let mut wanted = groups(&with_records, strength.max(3));
    wanted.extend(groups(&all, strength));
    let chosen = rows(&values, &wanted);
    let words = |row: &Vec<usize>| -> Vec<&str> {
        columns.iter().zip(row).map(|(column, value)| column[*value]).collect()
    };
    chosen.iter().map(|row| sequence(&words(row))).collect()
}

fn sequence(words: &[&str]) -> Sequence {
    let [call, state, push, again, passing, options @ ..] = words else {
        unreachable!("a row has all columns");
    };
    let job = format!("j{}", options.concat());
    let line = [*push, state, call, again, passing, REST].join(";").replace('J', &job);
    let operations = line.split(';').map(str::trim).filter(|one| !one.is_empty());
    let operations: Result<Vec<Operation>, _> = operations.map(str::parse).collect();
    let operations = operations.expect("the words of the columns are operations");
    Sequence { steps: Steps::Usual, operations }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pairs are few enough for every run.
    #[test]
    fn pairs_need_a_few_hundred_sequences() {
        let count = sequences(2).len();

        assert!((CALLS.len() * STATES.len()..400).contains(&count), "{count}");
    }

    #[test]
    fn a_sequence_is_a_job_and_what_happens_to_it() {
        let first = &sequences(2)[0];

        let line = first.to_string();

        let rest = REST.to_owned();
        assert!(line.starts_with("p push j; r recover 100; ") && line.ends_with(&rest));
        assert_eq!(line.parse().as_ref(), Ok(first));
    }
}
