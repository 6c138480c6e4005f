//! Sequences in which each option of a job occurs with each other option, each state of
//! the job and each call about it. The options that leave a record beside the job also
//! occur in every combination of three.
//!
//! Each sequence pushes one job with some options, brings it into a state, makes one
//! call about it, pushes a job with the same options again, lets time pass, and
//! finishes the jobs that are left. The reference model checks every answer.

use super::{
    covering::{groups, rows},
    operation::Operation,
    sequence::{Sequence, Steps},
};

/// The columns of the covering array for the options of the job. Each value is the text
/// of an option in a [`Draft`](super::operation::Draft): delay, expiry, priority,
/// client's id, unique key, attempts, lease of its own, headers, kept result. The number 9 means the
/// longest allowed value.
const OPTIONS: [&[&str]; 9] = [
    &["", "d1"],
    &["", "e1", "e2"],
    &["", "p1", "p2"],
    &["", "i1", "i9"],
    &["", "k1", "r1", "k9"],
    &["", "m1", "m2"],
    &["", "o1"],
    &["", "h1", "h9"],
    &["", "v1", "v2"],
];

/// The indexes in [`OPTIONS`] of the options for which a backend stores a record beside
/// the job: delay, expiry, client's id, unique key and kept result.
const WITH_RECORDS: [usize; 5] = [0, 1, 3, 4, 8];

/// The operations that push the job. `J` stands for the job with its options.
const PUSHES: [&str; 5] = [
    "p push J",
    "p push J t1; p repeat t1",
    "p push j; p push J",
    "p push j,J",
    "p create 1 p0s1; p add 1 J",
];

/// The operations that bring the job into a state, with one text for each state. The
/// states are, in this order: scheduled or ready, due, leased, lease expired, failed,
/// given back, postponed, dead, redriven, leased with progress.
const STATES: [&str; 10] = [
    "",
    "- advance 2; r recover 100",
    "- advance 2; a claim 3 l2",
    "- advance 2; a claim 3 l1; - advance 3",
    "- advance 2; a claim 3 l2; a settle 0R1",
    "- advance 2; a claim 3 l2; a settle 0G",
    "- advance 2; a claim 3 l2; a settle 0P1",
    "- advance 2; a claim 3 l2; a settle 0B",
    "- advance 2; a claim 3 l2; a settle 0B; o redrive-one 0",
    "- advance 2; a claim 3 l2; a report 0 v1",
];

/// The calls about the job, of which each sequence makes one.
const CALLS: [&str; 23] = [
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
    "a report 0 v2",
    "a settle 0D",
    "a settle 0D3",
    "a settle 0X",
    "a settle 0B",
    "a settle 0G",
    "a settle 0R0",
    "a settle 0R2",
    "a settle 0P2",
    "a settle-and-claim 0D 2 l1",
    "a settle-and-claim 0R0 2 l1",
    "p seal 1; p batch 1",
    "o cancel-batch 1",
];

/// The job that the job follows, if the backend has followers: none, one that is done
/// already, one that is done or discarded after the push, or one that stays leased. Each is
/// what comes before the push, the option of the job, and what follows the push.
const LEADERS: [&str; 5] = [
    "",
    "p push ji3; b claim 1 l2; b settle 0D | f3 |",
    "p push ji3; b claim 1 l2 | f3 | b settle 0D",
    "p push ji3; b claim 1 l2 | f3 | b settle 0X",
    "p push ji3; b claim 1 l2 | f3 |",
];

/// The push that follows the call: no push, the first push again, or the first push
/// again with a token.
const AGAIN: [&str; 3] = ["", "p push J", "p push J t1"];

/// The time that passes after the second push: almost none, enough for a job to expire,
/// or enough for all leases and delays to end.
const PASSING: [&str; 3] = ["- advance 1", "- advance 3", "- advance 4"];

/// The operations at the end, which recover, retry and finish the jobs that are left.
const REST: &str = "r recover 100; b claim 3 l1; b settle 0R0; b claim 3 l2; \
     b settle 0D; b release-worker";

/// Returns sequences in which all combinations of `strength` columns occur. `strength`
/// is 2 in a usual test run, and higher in a longer one.
pub(super) fn sequences(strength: usize) -> Vec<Sequence> {
    let columns: Vec<&[&str]> =
        [&CALLS[..], &STATES, &PUSHES, &AGAIN, &PASSING, &LEADERS]
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
    let [call, state, push, again, passing, leader, options @ ..] = words else {
        unreachable!("a row has all columns");
    };
    let mut parts = leader.split('|').map(str::trim);
    let mut part = || parts.next().unwrap_or_default();
    let (before, follows, after) = (part(), part(), part());
    let job = format!("j{}{follows}", options.concat());
    let line = [before, push, after, state, call, again, passing, REST];
    let line = line.join(";").replace('J', &job);
    let operations = line.split(';').map(str::trim).filter(|one| !one.is_empty());
    let operations: Result<Vec<Operation>, _> = operations.map(str::parse).collect();
    let operations = operations.expect("the words of the columns are operations");
    Sequence { steps: Steps::Usual, operations }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequences for all pairs are few enough for every test run.
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
