use super::*;

const PLACES: &[&str] = &["scheduled", "ranked"];

fn is_broken(pair: &Pair) -> Vec<String> {
    let name = text(&pair.name);
    let others = pair.leases.len().saturating_sub(1);
    pair.is_broken()
        .then(|| format!("{name} is broken"))
        .into_iter()
        .chain((0..others).map(|_| format!("{name} has another lease")))
        .collect()
}

/// Judges the records, and returns the number of jobs and the sorted problems. The
/// sort writes each record to the file on its own, so that the test covers merging.
fn judged(records: &[Record<'_>]) -> (u64, Vec<String>) {
    let mut sort = ExternalSort::new(1);
    for record in records {
        record.push_to(&mut sort);
        sort.spill().unwrap();
    }
    let sorted = sort.into_sorted().unwrap();
    let found = judge(sorted, PLACES, is_broken, ExternalSort::new(1)).unwrap();
    let mut problems = found.problems.into_sorted().unwrap();
    let mut all = Vec::new();
    while let Some(problem) = problems.next().unwrap() {
        all.push(String::from_utf8(problem.to_vec()).unwrap());
    }
    (found.jobs, all)
}

fn of(id: &'static str, source: Source, value: &'static [u8]) -> Record<'static> {
    Record::of_id(id.as_bytes(), source, value)
}

fn pair(name: &'static str, source: Source, value: &'static str) -> Record<'static> {
    Record::of_pair(name.as_bytes(), source, value.as_bytes())
}

/// R23: an audit reports no problem if the queue has jobs of every state and each
/// record belongs to one of these jobs.
#[test]
fn a_queue_in_order_has_no_problem() {
    let records = [
        of("scheduled", Source::ById, &[0]),
        of("scheduled", Source::Entry, b""),
        of("scheduled", Source::Holder, b"key"),
        of("scheduled", Source::BoundId, b""),
        of("ready", Source::Element, b""),
        of("ready", Source::Error, b""),
        of("leased", Source::Named, b"w/leased"),
        of("leased", Source::BoundId, b""),
        of("dead", Source::Dead, b""),
        of("dead", Source::Entry, b""),
        of("held", Source::Held, b"leased"),
        of("held", Source::Listed, b"leased"),
        of("leased", Source::Follower, b"held"),
        of("leased", Source::FollowerBytes, &[0, 0, 0, 7]),
        of("leased", Source::HeldBy, b"\0\0\0\x07held"),
        of("orphan", Source::Held, b"ended"),
        of("ended", Source::HeldBy, b"\0\0\0\x07orphan"),
        of("orphan", Source::Orphan, b""),
        pair("w/leased", Source::Lease, ""),
        pair("w/leased", Source::LeasedElement, ""),
    ];
    assert_eq!(judged(&records), (4, Vec::new()));
}

/// R23: a record without a job is reported, and so is a job without its entry.
#[test]
fn every_problem_is_named() {
    let records = [
        of("1", Source::ById, &[0]),
        of("2", Source::ById, &[0]),
        of("2", Source::ById, &[1]),
        of("2", Source::Dead, b""),
        of("2", Source::Entry, b""),
        of("3", Source::Entry, b""),
        of("4", Source::Error, b""),
        of("5", Source::BoundId, b""),
        of("6", Source::Holder, b"no job"),
        of("7", Source::Dead, b""),
        of("7", Source::Entry, b""),
        of("7", Source::Holder, b"a dead job"),
        of("8", Source::Element, b""),
        of("8", Source::Entry, b""),
        pair("9", Source::Lease, ""),
        pair("10", Source::LeasedElement, ""),
    ];
    let expected = [
        "10 is broken",
        "9 is broken",
        "entry 3 belongs to no job",
        "error 4 belongs to no job",
        "id 5 belongs to no job",
        "job 1 in [ById(\"scheduled\")] has 0 entries",
        "job 2 in [ById(\"scheduled\"), ById(\"ranked\"), Dead] has 1 entries",
        "job 8 in [Itself] has 1 entries",
        "unique key a dead job is held by no job",
        "unique key no job is held by no job",
    ];
    assert_eq!(judged(&records), (6, expected.map(str::to_owned).into()));
}

/// R23, R30: a held job that no end of a leader would release is reported.
#[test]
fn every_problem_of_followers_is_named() {
    let records = [
        of("lost", Source::Held, b"ended"),
        of("lost", Source::Listed, b"ended"),
        of("ended", Source::Follower, b"lost"),
        of("ended", Source::FollowerBytes, &[0, 0, 0, 7]),
        of("ended", Source::HeldBy, b"\0\0\0\x08lost"),
        of("unlisted", Source::Held, b"a"),
        of("listed", Source::Listed, b"a"),
        of("orphan", Source::Orphan, b""),
    ];
    let expected = [
        "job listed is listed as a follower of a, and is not",
        "job lost follows ended, which has ended",
        "job unlisted follows a, and is not among its followers",
        "the followers of job ended have 8 bytes, and 7 are recorded",
        "the orphan orphan is not a held job",
    ];
    assert_eq!(judged(&records), (0, expected.map(str::to_owned).into()));
}

/// R23: if a scan returns the record of a job twice, the job counts once. Equal
/// elements of a list are separate jobs, and so are jobs of one id that are stored
/// under several names.
#[test]
fn only_elements_of_lists_count_again() {
    let records = [
        of("scanned", Source::ById, &[0]),
        of("scanned", Source::ById, &[0]),
        of("scanned", Source::Entry, b""),
        of("scanned", Source::Entry, b""),
        of("listed", Source::Element, b""),
        of("listed", Source::Element, b""),
        of("named", Source::Named, b"one"),
        of("named", Source::Named, b"one"),
        of("named", Source::Named, b"other"),
        pair("lease", Source::Lease, "one"),
        pair("lease", Source::Lease, "one"),
        pair("lease", Source::LeasedElement, ""),
    ];
    assert_eq!(judged(&records), (5, Vec::new()));
}

/// R23: two different members of the sorted set for one name are two leases.
#[test]
fn two_leases_of_one_name_are_distinguished() {
    let records = [
        pair("lease", Source::Lease, "one"),
        pair("lease", Source::Lease, "other"),
        pair("lease", Source::LeasedElement, ""),
    ];
    assert_eq!(judged(&records), (0, vec!["lease has another lease".to_owned()]));
}

/// R23: only a problem that both readings found is reported, and it is reported
/// once.
#[test]
fn problems_of_one_reading_are_left_out() {
    let sort = |problems: &[&str]| {
        let mut sort = ExternalSort::new(1);
        for problem in problems {
            sort.push(&[problem.as_bytes()]);
            sort.spill().unwrap();
        }
        sort
    };
    let first = sort(&["d", "b", "b", "a"]);
    let second = sort(&["b", "c", "d", "b", "d", "e"]);

    assert_eq!(in_both(first, second).unwrap(), ["b", "d"]);
}
